// The golden sessions of the Go packages, byte for byte.
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "test/hex.hpp"
#include "uplink/snapshot.hpp"

using namespace uplink;
using namespace uplink_test;

namespace {

using Words = std::vector<std::string>;
using Row = std::vector<int32_t>; // id, generation, components

Words words(const std::string &line) {
  Words out;
  std::istringstream in(line);
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

template <typename Decoder> std::string ack_of(const Decoder &d) {
  uint8_t b[max_ack];
  return hex(b, d.ack(b));
}

Row row(const Words &w, size_t from) {
  Row r;
  for (size_t i = from; i < w.size(); i++) r.push_back(static_cast<int32_t>(std::stol(w[i])));
  return r;
}

void append(std::vector<Row> *to, const Objects &o) {
  for (size_t i = 0; i < o.n; i++) {
    Row r = {o.objects[i].id, o.objects[i].generation};
    r.insert(r.end(), o.row(i), o.row(i) + o.components);
    to->push_back(r);
  }
}

ObjectField field(const Words &w, size_t at) {
  static const std::map<std::string, ObjectClass> classes = {{"motion", ObjectClass::number},
                                                             {"angle", ObjectClass::angle},
                                                             {"quat", ObjectClass::quat},
                                                             {"flags", ObjectClass::integer},
                                                             {"bytes", ObjectClass::bytes}};
  ObjectField f;
  f.type = classes.at(w[at]);
  f.components = static_cast<uint8_t>(std::stoul(w[at + 1]));
  f.lo = static_cast<int32_t>(std::stol(w[at + 2]));
  f.hi = static_cast<int32_t>(std::stol(w[at + 3]));
  return f;
}

std::string result(Error e) {
  if (e == Error::stale) return "late";
  if (e == Error::no_baseline) return "missing";
  if (e == Error::desync) return "desync";
  return e == Error::ok ? "right" : "malformed";
}

std::ifstream open(const std::string &name) {
  std::ifstream in(std::string(UPLINK_TESTDATA "/../") + name);
  REQUIRE_MESSAGE(in.good(), name);
  return in;
}

// corrupt changes the first component of each set that the decoder returned and may still have.
void corrupt(const std::vector<Objects> &decoded, const ObjectField &first) {
  std::set<int32_t *> changed;
  for (const Objects &o : decoded) {
    auto *component = const_cast<int32_t *>(o.rows);
    if (o.n > 0 && changed.insert(component).second) *component += *component < first.hi ? 1 : -1;
  }
}

// ask_reset passes eight malformed messages to a decoder of areas, which then requests a message
// without a baseline.
void ask_reset(AreaDecoder *d, uint16_t newest) {
  const auto n = static_cast<uint16_t>(newest + 1);
  const uint8_t message[] = {static_cast<uint8_t>(n << 6), static_cast<uint8_t>(n >> 2),
                             static_cast<uint8_t>(n >> 10)};
  SnapshotInfo info;
  for (int i = 0; i < 8; i++) REQUIRE(d->decode({message, 3}, &info) == Error::malformed);
}

// initial returns the coded initial set of a session.
Data initial(const std::string &name) {
  std::ifstream in(UPLINK_TESTDATA "/../internal/snapshot/testdata/" + name + ".initial");
  std::string line;
  std::getline(in, line);
  return unhex(line);
}

// play_snapshots plays a session of snapshots and returns the number of decoded ones.
int play_snapshots(const std::string &name) {
  std::ifstream in = open("internal/snapshot/testdata/" + name + ".session");
  std::vector<ObjectField> fields;
  ObjectType *type = nullptr;
  SnapshotDecoder *decoder = nullptr;
  std::vector<std::vector<Row>> sets;
  std::vector<Data> sent;
  std::vector<Objects> decoded;
  const Data start = initial(name);
  int taken = 0, number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    const Words w = words(line);
    CAPTURE(name);
    CAPTURE(number);
    if (w.empty() || w[0][0] == '#') continue;
    if (w[0] == "field") {
      fields.push_back(field(w, 2));
    } else if (w[0] == "set") {
      sets.emplace_back();
      if (decoder != nullptr) continue;
      REQUIRE(ObjectType::create({}, fields.data(), fields.size(), &type) == Error::ok);
      REQUIRE(SnapshotDecoder::create({}, *type, {start.data(), start.size()}, &decoder) == Error::ok);
    } else if (w[0] == "object") {
      sets.back().push_back(row(w, 1));
    } else if (w[0] == "send") {
      sent.push_back(unhex(w.back()));
    } else if (w[0] == "take") {
      const size_t n = std::stoul(w[1]);
      SnapshotInfo info;
      Objects o;
      const Error e = decoder->decode({sent[n].data(), sent[n].size()}, &info, &o);
      REQUIRE(result(e) == w[3]);
      if (e != Error::ok) continue;
      taken++;
      decoded.push_back(o);
      std::vector<Row> got;
      append(&got, o);
      REQUIRE(info.number == n);
      REQUIRE(got == sets[n]);
    } else if (w[0] == "corrupt") {
      corrupt(decoded, fields[0]);
    } else if (w[0] == "ack" || w[0] == "lose") {
      REQUIRE(ack_of(*decoder) == w.back());
    }
  }
  SnapshotDecoder::destroy(decoder);
  ObjectType::destroy(type);
  return taken;
}

// play_areas plays a session of a world with areas and returns the number of decoded messages.
int play_areas(const std::string &name) {
  std::ifstream in = open("internal/replication/areas/testdata/" + name + ".session");
  std::vector<std::vector<ObjectField>> fields;
  std::vector<ObjectType *> types;
  AreaDecoder *decoder = nullptr;
  std::vector<Row> got, want;
  uint16_t newest = 0;
  int taken = 0, number = 0;
  bool compared = false, partial = false;
  for (std::string line; std::getline(in, line);) {
    number++;
    const Words w = words(line);
    CAPTURE(name);
    CAPTURE(number);
    if (w[0] == "reset") {
      ask_reset(decoder, newest);
    } else if (w[0] == "type") {
      fields.emplace_back();
    } else if (w[0] == "field") {
      fields.back().push_back(field(w, 1));
    } else if (w[0] == "partial") {
      partial = true;
    } else if (w[0] == "show") {
      want.push_back(row(w, 1));
      want.back().push_back(0);
    } else if (w[0] == "age") {
      want.back().back() = std::stoi(w[1]);
    } else if (w[0] == "take") {
      if (decoder == nullptr) {
        for (const auto &f : fields) {
          ObjectType *t = nullptr;
          REQUIRE(ObjectType::create({}, f.data(), f.size(), &t) == Error::ok);
          types.push_back(t);
        }
        REQUIRE(AreaDecoder::create({}, types.data(), types.size(), &decoder) == Error::ok);
      }
      if (compared) {
        REQUIRE(got == want);
        REQUIRE(decoder->complete() == !partial);
      }
      got.clear();
      want.clear();
      partial = false;
      const Data message = unhex(w[1]);
      SnapshotInfo info;
      const Error e = decoder->decode({message.data(), message.size()}, &info);
      REQUIRE(result(e) == w[3]);
      REQUIRE(ack_of(*decoder) == w[4]);
      compared = e == Error::ok;
      if (!compared) continue;
      newest = info.number;
      taken++;
      for (size_t k = 0; k < types.size(); k++) {
        std::vector<Row> shown;
        const Objects objects = decoder->shown(k);
        append(&shown, objects);
        for (size_t i = 0; i < shown.size(); i++) {
          Row &r = shown[i];
          r.push_back(objects.ages == nullptr ? 0 : static_cast<int32_t>(objects.ages[i]));
          r.insert(r.begin(), static_cast<int32_t>(k));
          got.push_back(r);
        }
      }
    }
  }
  AreaDecoder::destroy(decoder);
  for (ObjectType *t : types) ObjectType::destroy(t);
  return taken;
}

} // namespace

TEST_CASE("golden sessions of snapshots") {
  for (const char *name : {"cubes", "kinds", "ground", "crowd", "world", "reset", "physics"}) {
    CAPTURE(name);
    CHECK(play_snapshots(name) > 5);
  }
}

TEST_CASE("golden sessions of worlds with areas") {
  for (const char *name : {"moves", "loss", "resent"}) {
    CAPTURE(name);
    CHECK(play_areas(name) > 20);
  }
}

TEST_CASE("types of objects") {
  ObjectType *t = nullptr;
  ObjectField f;
  CHECK(ObjectType::create({}, &f, 0, &t) == Error::invalid);
  f.components = 4;
  CHECK(ObjectType::create({}, &f, 1, &t) == Error::invalid);
  Field fields[3];
  fields[0].name = "values";
  fields[0].count = 7;
  fields[0].resolution = 0.5;
  fields[1].name = "name";
  fields[1].kind = Kind::bytes;
  fields[1].size = 5;
  fields[2].name = "big";
  fields[2].kind = Kind::uint;
  fields[2].width = 64;
  Schema *s = nullptr;
  Frame *frame = nullptr;
  REQUIRE(Schema::create({}, "Thing", 0, fields, 3, &s) == Error::ok);
  REQUIRE(ObjectType::create({}, *s, &t) == Error::ok);
  REQUIRE(Frame::create({}, *t->schema(), &frame) == Error::ok);
  REQUIRE(t->components() == 7 + 2 + 3);
  const int32_t row[] = {1, 2, 3, 4, 5, 6, -7, 1, 2, 5, 'a' | 'b' << 8 | 'c' << 16 | 'd' << 24, 'e'};
  REQUIRE(t->restore(row, frame) == Error::ok);
  double values[7];
  uint64_t big = 0;
  Bytes name;
  REQUIRE(frame->get(0, values, 7) == Error::ok);
  REQUIRE(frame->get_bytes(1, &name) == Error::ok);
  REQUIRE(frame->get_integers(2, &big, 1) == Error::ok);
  CHECK(values[6] == -3.5);
  CHECK(std::string(reinterpret_cast<const char *>(name.data), name.size) == "abcde");
  CHECK(big == (uint64_t{2} << 32 | 1));
  Frame::destroy(frame);
  ObjectType::destroy(t);
  Schema::destroy(s);
}
