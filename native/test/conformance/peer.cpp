#include "test/conformance/peer.hpp"

#include <iostream>
#include <sstream>

namespace peer {

std::vector<std::string> split(const std::string &s, char separator) {
  std::vector<std::string> out;
  std::string part;
  std::istringstream in(s);
  while (std::getline(in, part, separator)) out.push_back(part);
  if (!s.empty() && s.back() == separator) out.emplace_back();
  return out;
}

bool parse_bytes(const std::string &word, std::vector<uint8_t> &out) {
  out.clear();
  if (word == "-") return true;
  if (word.size() % 2 != 0) return false;
  for (size_t i = 0; i < word.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(word.substr(i, 2), nullptr, 16)));
  return true;
}

std::string bytes_word(const uint8_t *data, size_t n) {
  if (n == 0) return "-";
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < n; i++) {
    out += digits[data[i] >> 4];
    out += digits[data[i] & 15];
  }
  return out;
}

} // namespace peer

int main() {
  peer::Peer p;
  peer::add_values(p);
  peer::add_codec(p);
  peer::add_downlink(p);
  peer::add_state(p);
#ifdef UPLINK_PEER_CLIENT
  peer::add_session(p);
#endif
  p.requests["hello"] = [&p](const peer::Words &w) {
    return w.size() == 2 && w[1] == "1" ? "ok native" + p.layers : std::string("error want hello 1");
  };
  p.requests["free"] = [&p](const peer::Words &w) {
    for (auto &f : p.frees) f(w[1]);
    return std::string("ok");
  };
  std::string line;
  while (std::getline(std::cin, line)) {
    peer::Words words = peer::split(line, ' ');
    auto r = words.empty() ? p.requests.end() : p.requests.find(words[0]);
    std::cout << (r == p.requests.end() ? "unsupported" : r->second(words)) << std::endl;
  }
}
