// Schemas, frames and bytes of the vectors in testdata.
#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/codec/schema.hpp"
#include "test/hex.hpp"
#include "uplink/codec.hpp"

namespace support {

using nlohmann::json;
using Buffer = uplink_test::Data;

inline std::string path(const std::string &name) {
  return std::string(UPLINK_TESTDATA) + "/" + name;
}

inline json load(const std::string &name) {
  std::ifstream in(path(name));
  return json::parse(in);
}

inline Buffer bytes(const std::string &hex) {
  return uplink_test::unhex(hex);
}

struct Destroy {
  void operator()(uplink::Schema *s) const { uplink::Schema::destroy(s); }
  void operator()(uplink::Frame *f) const { uplink::Frame::destroy(f); }
  void operator()(uplink::Encoder *e) const { uplink::Encoder::destroy(e); }
  void operator()(uplink::Decoder *d) const { uplink::Decoder::destroy(d); }
  void operator()(uplink::Prior *p) const { uplink::Prior::destroy(p); }
};
using SchemaOwner = std::unique_ptr<uplink::Schema, Destroy>;
using FrameOwner = std::unique_ptr<uplink::Frame, Destroy>;

inline uplink::Kind kind(const std::string &name) {
  static const char *const names[] = {"vec2", "vec3", "scalar", "angle", "quat",  "unitvec",
                                      "uint", "int",  "bits",   "bool",  "fixed", "bytes"};
  for (size_t i = 0; i < 12; i++) {
    if (name == names[i]) return static_cast<uplink::Kind>(i);
  }
  throw std::runtime_error("kind " + name);
}

// schema returns the schema of a schema file.
inline SchemaOwner schema(const json &file) {
  std::vector<uplink::Field> fields;
  std::vector<std::string> names;
  names.reserve(2 * file["fields"].size());
  for (const json &f : file["fields"]) {
    uplink::Field out;
    names.push_back(f["name"]);
    out.name = names.back().c_str();
    out.kind = kind(f["kind"]);
    out.count = f.value("count", uint16_t{1});
    out.resolution = f.value("resolution", 0.0);
    out.bits = f.value("bits", uint8_t{0});
    out.width = f.value("width", uint8_t{0});
    out.size = f.value("size", uint16_t{0});
    if (out.kind == uplink::Kind::bytes) {
      out.size = f["max"];
    } else {
      out.has_min = f.contains("min");
      out.min = f.value("min", 0.0);
      out.has_max = f.contains("max");
      out.max = f.value("max", 0.0);
    }
    if (f.contains("velocity")) {
      names.push_back(f["velocity"]);
      out.velocity = names.back().c_str();
      out.velocity_scale = f.value("velocity_scale", 1.0);
    }
    fields.push_back(out);
  }
  uplink::Schema *s = nullptr;
  size_t wrong = 0;
  std::string rpc = file.value("rpc", "");
  uplink::Error e = uplink::Schema::create({}, rpc.c_str(), file.value("rate_hz", 0.0), fields.data(),
                                           fields.size(), &s, &wrong);
  if (e != uplink::Error::ok)
    throw std::runtime_error("field " + std::to_string(wrong) + ": " + uplink::text(e));
  return SchemaOwner(s);
}

inline FrameOwner frame(const uplink::Schema &s) {
  uplink::Frame *f = nullptr;
  if (uplink::Frame::create({}, s, &f) != uplink::Error::ok) throw std::bad_alloc();
  return FrameOwner(f);
}

// set sets components and byte strings (in hex) of a frame.
inline void set(uplink::Frame &f, const json &ints, const json &strings) {
  const auto &schema = *uplink::detail::impl(f).schema;
  std::vector<int32_t> c = ints.is_null() ? std::vector<int32_t>() : ints.get<std::vector<int32_t>>();
  if (f.set_components(c.data(), c.size()) != uplink::Error::ok) throw std::runtime_error("components");
  for (size_t i = 0; i < schema.strings.size(); i++) {
    Buffer b = bytes(strings.at(i));
    if (f.set_bytes(schema.strings[i], {b.data(), b.size()}) != uplink::Error::ok)
      throw std::runtime_error("bytes");
  }
}

inline bool equal(const uplink::Frame &f, const uplink::Frame &other) {
  const auto &a = uplink::detail::impl(f), &b = uplink::detail::impl(other);
  const auto &s = *a.schema;
  for (size_t i = 0; i < s.component_count; i++) {
    if (a.view.c[i] != b.view.c[i]) return false;
  }
  for (size_t i = 0; i < s.strings.size(); i++) {
    if (std::string(reinterpret_cast<char *>(a.view.bytes + s.offsets[i]), a.view.lengths[i]) !=
        std::string(reinterpret_cast<char *>(b.view.bytes + s.offsets[i]), b.view.lengths[i]))
      return false;
  }
  return true;
}

} // namespace support
