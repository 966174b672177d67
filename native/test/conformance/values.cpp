// Layer values: schemas, quantization.
#include <cstring>
#include <deque>

#include "test/conformance/peer.hpp"

namespace peer {

namespace {

struct Draft {
  std::string rpc;
  double rate = 0;
  std::deque<std::string> names;
  std::vector<uplink::Field> fields;
  uplink::Schema *schema = nullptr;

  ~Draft() { uplink::Schema::destroy(schema); }
};

std::map<std::string, std::unique_ptr<Draft>> drafts;

bool is_integer(uplink::Kind k) {
  return k == uplink::Kind::uint || k == uplink::Kind::int_ || k == uplink::Kind::bits ||
         k == uplink::Kind::boolean;
}
bool is_string(uplink::Kind k) {
  return k == uplink::Kind::fixed || k == uplink::Kind::bytes;
}

size_t values_of(const uplink::Field &f) {
  switch (f.kind) {
  case uplink::Kind::vec2:
    return 2;
  case uplink::Kind::vec3:
  case uplink::Kind::unitvec:
    return 3;
  case uplink::Kind::quat:
    return 4;
  default:
    return f.count;
  }
}

bool kind_of(const std::string &name, uplink::Kind *out) {
  static const char *const names[] = {"vec2", "vec3", "scalar", "angle", "quat",  "unitvec",
                                      "uint", "int",  "bits",   "bool",  "fixed", "bytes"};
  for (size_t i = 0; i < 12; i++) {
    if (name == names[i]) {
      *out = static_cast<uplink::Kind>(i);
      return true;
    }
  }
  return false;
}

std::string field(const Words &w) {
  Draft &d = *drafts[w[1]];
  uplink::Field f;
  d.names.push_back(w[2]);
  f.name = d.names.back().c_str();
  if (!kind_of(w[3], &f.kind)) return "error kind " + w[3];
  for (size_t i = 4; i < w.size(); i++) {
    size_t at = w[i].find('=');
    std::string name = w[i].substr(0, at), value = w[i].substr(at + 1);
    if (name == "count")
      f.count = static_cast<uint16_t>(std::stoul(value));
    else if (name == "resolution")
      f.resolution = std::stod(value);
    else if (name == "bits")
      f.bits = static_cast<uint8_t>(std::stoul(value));
    else if (name == "width")
      f.width = static_cast<uint8_t>(std::stoul(value));
    else if (name == "size")
      f.size = static_cast<uint16_t>(std::stoul(value));
    else if (name == "max" && f.kind == uplink::Kind::bytes)
      f.size = static_cast<uint16_t>(std::stoul(value));
    else if (name == "min")
      f.has_min = true, f.min = std::stod(value);
    else if (name == "max")
      f.has_max = true, f.max = std::stod(value);
    else if (name == "velocity_scale")
      f.velocity_scale = std::stod(value);
    else if (name == "velocity") {
      d.names.push_back(value);
      f.velocity = d.names.back().c_str();
    } else if (name != "urgent")
      return "error option " + name;
  }
  d.fields.push_back(f);
  return "ok";
}

std::string compile(const Words &w) {
  Draft &d = *drafts[w[1]];
  size_t wrong = 0;
  uplink::Error e =
      uplink::Schema::create({}, d.rpc.c_str(), d.rate, d.fields.data(), d.fields.size(), &d.schema, &wrong);
  if (e != uplink::Error::ok) return "error schema: field " + std::to_string(wrong) + ": " + uplink::text(e);
  char print[17];
  std::snprintf(print, sizeof print, "%016llx", static_cast<unsigned long long>(d.schema->fingerprint()));
  std::string factors;
  for (size_t i = 0; i < d.schema->velocity_factors(); i++)
    factors += (i > 0 ? "," : "") + std::to_string(d.schema->velocity_factor(i));
  return std::string("ok ") + print + " " + (factors.empty() ? "-" : factors);
}

std::string factors(const Words &w) {
  std::vector<int64_t> f;
  if (w[2] != "-") {
    for (const std::string &s : split(w[2], ',')) f.push_back(std::stoll(s));
  }
  return drafts[w[1]]->schema->set_velocity_factors(f.data(), f.size()) == uplink::Error::ok
             ? "ok"
             : "error factors";
}

struct FrameOwner {
  uplink::Frame *f = nullptr;
  explicit FrameOwner(const uplink::Schema &s) { (void)uplink::Frame::create({}, s, &f); }
  ~FrameOwner() { uplink::Frame::destroy(f); }
};

std::string quantize(const Words &w) {
  Draft &d = *drafts[w[1]];
  FrameOwner frame(*d.schema);
  std::vector<std::string> values = split(w[2], ',');
  size_t at = 0;
  for (size_t i = 0; i < d.fields.size(); i++) {
    const uplink::Field &f = d.fields[i];
    uplink::Error e;
    if (is_string(f.kind)) {
      std::vector<uint8_t> b;
      const std::string &v = values[at++];
      parse_bytes(v.size() > 1 ? v.substr(1) : "-", b);
      e = frame.f->set_bytes(i, {b.data(), b.size()});
    } else {
      std::vector<double> numbers;
      std::vector<uint64_t> integers;
      for (size_t k = 0; k < values_of(f); k++) {
        const std::string &v = values[at++];
        if (is_integer(f.kind)) {
          integers.push_back(v[0] == '-' ? static_cast<uint64_t>(std::stoll(v)) : std::stoull(v));
          continue;
        }
        uint64_t bits = std::stoull(v, nullptr, 16);
        double x;
        std::memcpy(&x, &bits, sizeof x);
        numbers.push_back(x);
      }
      e = is_integer(f.kind) ? frame.f->set_integers(i, integers.data(), integers.size())
                             : frame.f->set(i, numbers.data(), numbers.size());
    }
    if (e != uplink::Error::ok) return "drop";
  }
  return "ok " + frame_word(w[1], *frame.f);
}

std::string restore(const Words &w) {
  Draft &d = *drafts[w[1]];
  FrameOwner frame(*d.schema);
  if (!frame_of(w[1], w[2], *frame.f)) return "error frame";
  std::string out;
  for (size_t i = 0; i < d.fields.size(); i++) {
    const uplink::Field &f = d.fields[i];
    if (is_string(f.kind)) {
      uplink::Bytes b;
      (void)frame.f->get_bytes(i, &b);
      out += ",x" + (b.size == 0 ? "" : bytes_word(b.data, b.size));
    } else if (is_integer(f.kind)) {
      std::vector<uint64_t> v(f.count);
      (void)frame.f->get_integers(i, v.data(), v.size());
      for (uint64_t x : v)
        out += "," +
               (f.kind == uplink::Kind::int_ ? std::to_string(static_cast<int64_t>(x)) : std::to_string(x));
    } else {
      std::vector<double> v(values_of(f));
      (void)frame.f->get(i, v.data(), v.size());
      for (double x : v) {
        uint64_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        char b[18];
        std::snprintf(b, sizeof b, ",%016llx", static_cast<unsigned long long>(bits));
        out += b;
      }
    }
  }
  return "ok " + out.substr(1);
}

} // namespace

uplink::Schema *schema_of(const std::string &handle) {
  auto d = drafts.find(handle);
  return d == drafts.end() ? nullptr : d->second->schema;
}

const std::vector<uplink::Field> *fields_of(const std::string &handle) {
  auto d = drafts.find(handle);
  return d == drafts.end() ? nullptr : &d->second->fields;
}

bool frame_of(const std::string &handle, const std::string &word, uplink::Frame &f) {
  const auto &fields = *fields_of(handle);
  std::vector<int32_t> c;
  std::vector<std::string> strings;
  for (const std::string &part : split(word, ',')) {
    if (!part.empty() && part[0] == 'x')
      strings.push_back(part.size() > 1 ? part.substr(1) : "-");
    else
      c.push_back(static_cast<int32_t>(static_cast<uint32_t>(std::stoll(part))));
  }
  if (f.set_components(c.data(), c.size()) != uplink::Error::ok) return false;
  size_t n = 0;
  for (size_t i = 0; i < fields.size(); i++) {
    if (!is_string(fields[i].kind)) continue;
    std::vector<uint8_t> b;
    if (n == strings.size() || !parse_bytes(strings[n++], b)) return false;
    if (f.set_bytes(i, {b.data(), b.size()}) != uplink::Error::ok) return false;
  }
  return n == strings.size();
}

std::string frame_word(const std::string &handle, const uplink::Frame &f) {
  const auto &fields = *fields_of(handle);
  std::string out;
  for (size_t i = 0; i < schema_of(handle)->components(); i++) out += "," + std::to_string(f.components()[i]);
  for (size_t i = 0; i < fields.size(); i++) {
    uplink::Bytes b;
    if (f.get_bytes(i, &b) == uplink::Error::ok)
      out += ",x" + (b.size == 0 ? "" : bytes_word(b.data, b.size));
  }
  return out.substr(1);
}

void add_values(Peer &p) {
  p.layers += " values";
  p.requests["schema"] = [](const Words &w) {
    auto d = std::make_unique<Draft>();
    d->rpc = w[2];
    d->rate = std::stod(w[3]);
    drafts[w[1]] = std::move(d);
    return std::string("ok");
  };
  p.requests["field"] = field;
  p.requests["compile"] = compile;
  p.requests["factors"] = factors;
  p.requests["quantize"] = quantize;
  p.requests["restore"] = restore;
  p.frees.emplace_back([](const std::string &h) { drafts.erase(h); });
}

} // namespace peer
