// The layers "snapshots" and "areas" of the conformance peer.
#include "test/conformance/peer.hpp"
#include "uplink/snapshot.hpp"

namespace peer {

namespace {

struct Receiver {
  uplink::SnapshotDecoder *snapshots = nullptr;
  uplink::AreaDecoder *areas = nullptr;
  size_t types = 0;

  Receiver() = default;
  Receiver(const Receiver &) = delete;
  Receiver &operator=(const Receiver &) = delete;
  ~Receiver() {
    uplink::SnapshotDecoder::destroy(snapshots);
    uplink::AreaDecoder::destroy(areas);
  }
};

std::map<std::string, uplink::ObjectType *> types;
std::map<std::string, std::unique_ptr<Receiver>> receivers;

std::string objects(const Words &w) {
  static const char *const classes[] = {"number", "angle", "quat", "integer", "bytes"};
  std::vector<uplink::ObjectField> fields;
  for (size_t i = 2; i < w.size(); i++) {
    const std::vector<std::string> parts = split(w[i], ':');
    if (parts.size() != 4) return "error field";
    uplink::ObjectField f;
    for (size_t c = 0; c < 5; c++)
      if (parts[0] == classes[c]) f.type = static_cast<uplink::ObjectClass>(c);
    f.components = static_cast<uint8_t>(std::stoul(parts[1]));
    f.lo = static_cast<int32_t>(std::stol(parts[2]));
    f.hi = static_cast<int32_t>(std::stol(parts[3]));
    fields.push_back(f);
  }
  uplink::ObjectType *t = nullptr;
  if (uplink::ObjectType::create({}, fields.data(), fields.size(), &t) != uplink::Error::ok)
    return "error objects";
  types[w[1]] = t;
  return "ok";
}

std::string snapshots(const Words &w) {
  auto r = std::make_unique<Receiver>();
  if (uplink::SnapshotDecoder::create({}, *types[w[2]], {}, &r->snapshots) != uplink::Error::ok)
    return "error snapshots";
  receivers[w[1]] = std::move(r);
  return "ok";
}

std::string areas(const Words &w) {
  auto r = std::make_unique<Receiver>();
  std::vector<const uplink::ObjectType *> of;
  for (size_t i = 2; i < w.size(); i++) of.push_back(types[w[i]]);
  r->types = of.size();
  if (uplink::AreaDecoder::create({}, of.data(), of.size(), &r->areas) != uplink::Error::ok)
    return "error areas";
  receivers[w[1]] = std::move(r);
  return "ok";
}

void append(std::string *out, const std::string &prefix, const uplink::Objects &o) {
  for (size_t i = 0; i < o.n; i++) {
    *out += " " + prefix + std::to_string(o.objects[i].id) + "." + std::to_string(o.objects[i].generation);
    for (size_t k = 0; k < o.components; k++) *out += (k == 0 ? ":" : ",") + std::to_string(o.row(i)[k]);
  }
}

std::string receive(const Words &w) {
  Receiver &r = *receivers[w[1]];
  std::vector<uint8_t> b;
  parse_bytes(w[2], b);
  uplink::SnapshotInfo info;
  uplink::Objects all;
  const uplink::Error e = r.snapshots != nullptr ? r.snapshots->decode({b.data(), b.size()}, &info, &all)
                                                 : r.areas->decode({b.data(), b.size()}, &info);
  switch (e) {
  case uplink::Error::ok:
    break;
  case uplink::Error::stale:
    return "drop late";
  case uplink::Error::no_baseline:
    return "drop baseline";
  case uplink::Error::desync:
    return "drop desync";
  default:
    return "drop malformed";
  }
  std::string out = "ok " + std::to_string(info.number);
  if (r.snapshots != nullptr) {
    append(&out, "", all);
    return out;
  }
  out += " " + std::to_string(info.distance);
  for (size_t k = 0; k < r.types; k++) append(&out, std::to_string(k) + "/", r.areas->shown(k));
  return out;
}

} // namespace

uplink::ObjectType *type_of(const std::string &handle) {
  const auto t = types.find(handle);
  return t == types.end() ? nullptr : t->second;
}

void add_downlink(Peer &p) {
  p.layers += " snapshots areas";
  p.requests["objects"] = objects;
  p.requests["snapshots"] = snapshots;
  p.requests["areas"] = areas;
  p.requests["receive"] = receive;
  const Request codec_acks = p.requests["acks"];
  p.requests["acks"] = [codec_acks](const Words &w) {
    const auto r = receivers.find(w[1]);
    if (r == receivers.end()) return codec_acks(w);
    uint8_t b[uplink::max_ack];
    return "ok " + bytes_word(b, r->second->snapshots != nullptr ? r->second->snapshots->ack(b)
                                                                 : r->second->areas->ack(b));
  };
  p.frees.emplace_back([](const std::string &h) { receivers.erase(h); });
}

} // namespace peer
