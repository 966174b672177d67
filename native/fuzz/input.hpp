// Inputs of the fuzz targets, and golden sessions that the targets begin with. The Go target of the
// same parser reads the same inputs: testdata/fuzz/README.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "uplink/objects.hpp"

namespace fuzz {

// check stops the process, as a finding, unless ok is true.
inline void check(bool ok, const char *what) {
  if (ok) return;
  std::fprintf(stderr, "check failed: %s\n", what);
  std::abort();
}

// Entries are the messages of an input, as Go's internal/uplinktest/entries writes them: a byte with
// the length and, as the high bit, whether the message is reliable, and the message. After the
// length 127 its low and its high byte follow. The last message may be cut off.
class Entries {
public:
  Entries(const uint8_t *in, size_t size) : in_(in), left_(size) {}

  // next returns the next message and reports whether there is one.
  bool next(uplink::Bytes *message, bool *reliable = nullptr) {
    if (left_ == 0) return false;
    if (reliable != nullptr) *reliable = (in_[0] & 0x80) != 0;
    size_t n = in_[0] & 0x7f;
    skip(1);
    if (n == 0x7f && left_ >= 2) {
      n = in_[0] | static_cast<size_t>(in_[1]) << 8;
      skip(2);
    }
    if (n > left_) n = left_;
    *message = {in_, n};
    skip(n);
    return true;
  }

private:
  void skip(size_t n) {
    in_ += n;
    left_ -= n;
  }
  const uint8_t *in_;
  size_t left_;
};

using Data = std::vector<uint8_t>;

inline uplink::Bytes bytes(const Data &d) {
  return {d.data(), d.size()};
}

// Session is a golden session: the fields of its types of objects, and the messages of a command.
struct Session {
  std::vector<std::vector<uplink::ObjectField>> types;
  std::vector<Data> messages;

  // Session reads a file, relative to the root of the repository.
  Session(const char *file, const char *command) {
    std::ifstream in(std::string(UPLINK_ROOT "/") + file);
    check(in.good(), file);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::vector<std::string> w;
      for (std::string s; words >> s;) w.push_back(s);
      if (w.empty()) continue;
      if (w[0] == "type") types.emplace_back();
      if (w[0] == "field") {
        if (types.empty()) types.emplace_back();
        types.back().push_back(field(w));
      }
      if (w[0] != command) continue;
      const std::string &hex = w[w[1] == "=" ? 2 : 1];
      Data m;
      for (size_t i = 0; i + 1 < hex.size(); i += 2)
        m.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
      messages.push_back(m);
    }
    check(!types.empty() && !messages.empty(), file);
  }

private:
  // field returns the field of a line, whose last four words are its class, size and bounds.
  static uplink::ObjectField field(const std::vector<std::string> &w) {
    static const char *const classes[] = {"motion", "angle", "quat", "flags", "bytes"};
    const size_t n = w.size() - 4;
    uint8_t k = 0;
    while (k < 4 && w[n] != classes[k]) k++;
    return {static_cast<uplink::ObjectClass>(k), static_cast<uint8_t>(std::stoi(w[n + 1])),
            static_cast<int32_t>(std::stol(w[n + 2])), static_cast<int32_t>(std::stol(w[n + 3]))};
  }
};

// Results contains the results of a target for an input, in one line that must equal that of the Go
// target: for each message the hash of the decoded data, or the word for the error. They are
// printed if the environment variable UPLINK_FUZZ_RESULTS is set.
class Results {
public:
  ~Results() {
    if (std::getenv("UPLINK_FUZZ_RESULTS") != nullptr) std::printf("%s\n", line_.c_str());
  }
  // add adds a number of 32 bits to the hash of the next result.
  void add(int32_t v) {
    for (int i = 0; i < 4; i++) hash_ = (hash_ ^ (static_cast<uint32_t>(v) >> 8 * i & 255)) * 1099511628211;
  }
  void add(const uplink::Object &o, const int32_t *row, size_t components) {
    add(o.id);
    add(o.generation);
    for (size_t k = 0; k < components; k++) add(row[k]);
  }
  void add(const uplink::Objects &o) {
    add(static_cast<int32_t>(o.n));
    for (size_t i = 0; i < o.n; i++) add(o.objects[i], o.row(i), o.components);
  }
  // end ends the result of a message.
  void end(uplink::Error e) {
    using uplink::Error;
    char text[18];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_));
    line_ += e == Error::ok            ? text
             : e == Error::malformed   ? "malformed"
             : e == Error::stale       ? "late"
             : e == Error::no_baseline ? "missing"
             : e == Error::duplicate   ? "duplicate"
             : e == Error::desync      ? "desync"
                                       : "full";
    line_ += ' ';
    hash_ = start;
  }

private:
  static constexpr uint64_t start = UINT64_C(14695981039346656037);
  uint64_t hash_ = start;
  std::string line_;
};

// check_row checks that the components of a row are within the bounds of its fields.
inline void check_row(const std::vector<uplink::ObjectField> &fields, const int32_t *row) {
  using uplink::ObjectClass;
  for (const uplink::ObjectField &f : fields) {
    size_t k = 0;
    if (f.type == ObjectClass::quat) {
      check(row[0] >= 0 && row[0] <= 3, "number of the largest element");
      k = 1;
    }
    const size_t bounded = f.type == ObjectClass::bytes ? 1 : f.components;
    for (; k < bounded; k++) check(row[k] >= f.lo && row[k] <= f.hi, "bounds of a component");
    row += f.components;
  }
}

} // namespace fuzz
