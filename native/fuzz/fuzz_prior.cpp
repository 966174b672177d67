// Files of priors. The input gets a right hash, so that the parser reads all of it.
#include <cstdlib>
#include <cstring>

#include "fuzz/input.hpp"

#include "src/codec/bits.hpp"
#include "uplink/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 8 || size > 100000) return 0;
  uint8_t *file = static_cast<uint8_t *>(std::malloc(size));
  std::memcpy(file, data, size);
  uplink::detail::Fnv h;
  for (size_t i = 0; i + 8 < size; i++) h.put(file[i]);
  uint64_t x = h.sum();
  x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
  x ^= x >> 29;
  for (size_t i = 0; i < 8; i++, x >>= 8) file[size - 8 + i] = static_cast<uint8_t>(x);
  uplink::Prior *p = nullptr;
  uplink::Error e = uplink::Prior::create({}, {file, size}, &p);
  if ((e == uplink::Error::ok) != (p != nullptr)) std::abort();
  uplink::Prior::destroy(p);
  std::free(file);
  return 0;
}
