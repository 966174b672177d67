// The peer of "uplink conformance": docs/spec/conformance.md. Each layer adds its requests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "uplink/objects.hpp"

namespace peer {

using Words = std::vector<std::string>;

// Answer is the line without its line feed.
using Request = std::function<std::string(const Words &)>;

struct Peer {
  std::map<std::string, Request> requests;
  std::string layers;
  std::vector<std::function<void(const std::string &handle)>> frees;
};

void add_values(Peer &p);
void add_codec(Peer &p);
void add_downlink(Peer &p); // after add_codec
void add_state(Peer &p);    // after add_downlink
#ifdef UPLINK_PEER_CLIENT
void add_session(Peer &p);
#endif

// type_of returns the type of objects of a handle, or null.
uplink::ObjectType *type_of(const std::string &handle);

std::vector<std::string> split(const std::string &s, char separator);
bool parse_bytes(const std::string &word, std::vector<uint8_t> &out);
std::string bytes_word(const uint8_t *data, size_t n);

// schema_of returns the schema of a handle, or null.
uplink::Schema *schema_of(const std::string &handle);
const std::vector<uplink::Field> *fields_of(const std::string &handle);

// frame_of parses the word of a frame. frame_word writes one.
bool frame_of(const std::string &handle, const std::string &word, uplink::Frame &f);
std::string frame_word(const std::string &handle, const uplink::Frame &f);

} // namespace peer
