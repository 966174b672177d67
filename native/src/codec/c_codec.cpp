// The flat C interface of the codec.
#include "src/base/c_api.hpp"
#include "src/codec/schema.hpp"
#include "uplink/codec.hpp"

#define UPLINK_TEXT(x) #x
#define UPLINK_NUMBERS(a, b, c) UPLINK_TEXT(a) "." UPLINK_TEXT(b) "." UPLINK_TEXT(c)

using namespace uplink::detail::c_api;
using uplink::Error;

namespace {

static_assert(UPLINK_UNBOUND == static_cast<int>(Error::unbound), "the errors are those of base.hpp");
static_assert(UPLINK_BYTES == static_cast<int>(uplink::Kind::bytes), "the kinds are those of codec.hpp");
static_assert(UPLINK_MAX_CALLS == uplink::max_calls && UPLINK_MAX_ACK == uplink::max_ack, "limits");

bool field_of(const uplink_field *fields, size_t i, uplink::Field *to) {
  uplink_field f;
  if (!load(fields, i, &f)) return false;
  if (f.kind < 0 || f.kind > UPLINK_BYTES) return false;
  to->name = f.name;
  to->kind = static_cast<uplink::Kind>(f.kind);
  to->resolution = f.resolution;
  to->has_min = f.has_min != 0;
  to->has_max = f.has_max != 0;
  to->min = f.min;
  to->max = f.max;
  to->velocity = f.velocity;
  to->velocity_scale = f.velocity_scale == 0 ? 1 : f.velocity_scale;
  return number(f.count, 1, &to->count) && number(f.bits, 0, &to->bits) && number(f.width, 0, &to->width) &&
         number(f.size, 0, &to->size);
}

template <typename Config, typename From> bool shared_config(const From &c, Config *to) {
  if (c.codec != UPLINK_RLE && c.codec != UPLINK_ADAPTIVE) return false;
  to->codec = c.codec == UPLINK_RLE ? uplink::Codec::rle : uplink::Codec::adaptive;
  to->reliable = c.reliable != 0;
  to->prior = as<const uplink::Prior>(c.prior);
  return number(c.rpc, 0, &to->rpc) && number(c.ring, 64, &to->ring) &&
         number(c.peer_ring, 64, &to->peer_ring);
}

} // namespace

const char *uplink_error_text(uplink_error e) {
  return uplink::text(static_cast<Error>(e));
}

const char *uplink_version(void) {
  return UPLINK_NUMBERS(UPLINK_VERSION_MAJOR, UPLINK_VERSION_MINOR, UPLINK_VERSION_PATCH);
}

uplink_error uplink_schema_create(const uplink_allocator *a, const char *rpc, double rate_hz,
                                  const uplink_field *fields, size_t n, uplink_schema **out, size_t *field) {
  uplink::detail::Array<uplink::Field> own;
  if (field != nullptr) *field = n;
  if (n > uplink::detail::max_fields) return UPLINK_INVALID;
  if (!own.create(of(a), n)) return UPLINK_NO_MEMORY;
  for (size_t i = 0; i < n; i++) {
    if (field_of(fields, i, &own[i])) continue;
    if (field != nullptr) *field = i;
    return UPLINK_INVALID;
  }
  uplink::Schema *s = nullptr;
  Error e = uplink::Schema::create(of(a), rpc, rate_hz, own.data(), n, &s, field);
  *out = made<uplink_schema>(s);
  return code(e);
}

void uplink_schema_destroy(uplink_schema *s) {
  uplink::Schema::destroy(gone<uplink::Schema>(s));
}
size_t uplink_schema_components(const uplink_schema *s) {
  return in(s)->components();
}
uint64_t uplink_schema_fingerprint(const uplink_schema *s) {
  return in(s)->fingerprint();
}
uint16_t uplink_schema_field_hash(const uplink_schema *s, size_t field) {
  return in(s)->field_hash(field);
}
size_t uplink_schema_description(const uplink_schema *s, size_t field, char *to, size_t capacity) {
  return in(s)->description(field, to, capacity);
}
size_t uplink_schema_velocity_factors(const uplink_schema *s) {
  return in(s)->velocity_factors();
}
int64_t uplink_schema_velocity_factor(const uplink_schema *s, size_t i) {
  return in(s)->velocity_factor(i);
}
uplink_error uplink_schema_set_velocity_factors(uplink_schema *s, const int64_t *factors, size_t n) {
  return code(in(s)->set_velocity_factors(factors, n));
}

uplink_error uplink_frame_create(const uplink_allocator *a, const uplink_schema *s, uplink_frame **out) {
  uplink::Frame *f = nullptr;
  Error e = uplink::Frame::create(of(a), *in(s), &f);
  *out = made<uplink_frame>(f);
  return code(e);
}
void uplink_frame_destroy(uplink_frame *f) {
  uplink::Frame::destroy(gone<uplink::Frame>(f));
}
uplink_error uplink_frame_set(uplink_frame *f, size_t field, const double *values, size_t n) {
  return code(in(f)->set(field, values, n));
}
uplink_error uplink_frame_set_integers(uplink_frame *f, size_t field, const uint64_t *values, size_t n) {
  return code(in(f)->set_integers(field, values, n));
}
uplink_error uplink_frame_set_bytes(uplink_frame *f, size_t field, const uint8_t *data, size_t n) {
  return code(in(f)->set_bytes(field, {data, n}));
}
uplink_error uplink_frame_get(const uplink_frame *f, size_t field, double *values, size_t n) {
  return code(in(f)->get(field, values, n));
}
uplink_error uplink_frame_get_integers(const uplink_frame *f, size_t field, uint64_t *values, size_t n) {
  return code(in(f)->get_integers(field, values, n));
}
uplink_error uplink_frame_get_bytes(const uplink_frame *f, size_t field, const uint8_t **data, size_t *n) {
  uplink::Bytes b;
  Error e = in(f)->get_bytes(field, &b);
  *data = b.data;
  *n = b.size;
  return code(e);
}
const int32_t *uplink_frame_components(const uplink_frame *f) {
  return in(f)->components();
}
uplink_error uplink_frame_set_components(uplink_frame *f, const int32_t *components, size_t n) {
  return code(in(f)->set_components(components, n));
}

uplink_error uplink_prior_create(const uplink_allocator *a, const uint8_t *file, size_t n,
                                 uplink_prior **out) {
  uplink::Prior *p = nullptr;
  Error e = uplink::Prior::create(of(a), {file, n}, &p);
  *out = made<uplink_prior>(p);
  return code(e);
}
void uplink_prior_destroy(uplink_prior *p) {
  uplink::Prior::destroy(gone<uplink::Prior>(p));
}
uint64_t uplink_prior_hash(const uplink_prior *p) {
  return p == nullptr ? uplink::Prior::generic().hash() : in(p)->hash();
}

uplink_error uplink_encoder_create(const uplink_allocator *a, const uplink_schema *s,
                                   const uplink_encoder_config *c, uplink_encoder **out) {
  uplink_encoder_config from;
  uplink::EncoderConfig own;
  *out = nullptr;
  if (!load(c, &from) || !shared_config(from, &own) || !number(from.copies, 0, &own.copies) ||
      !number(from.max_payload, static_cast<int32_t>(uplink::max_payload), &own.max_payload))
    return UPLINK_INVALID;
  uplink::Encoder *e = nullptr;
  Error err = uplink::Encoder::create(of(a), *in(s), own, &e);
  *out = made<uplink_encoder>(e);
  return code(err);
}
void uplink_encoder_destroy(uplink_encoder *e) {
  uplink::Encoder::destroy(gone<uplink::Encoder>(e));
}
uplink_error uplink_encoder_encode(uplink_encoder *e, const uplink_frame *f, uint8_t *to, size_t capacity,
                                   size_t *size) {
  return code(in(e)->encode(*in(f), {to, capacity}, size));
}
uplink_error uplink_encoder_hold(uplink_encoder *e, const uplink_frame *f) {
  return code(in(e)->hold(*in(f)));
}
uplink_error uplink_encoder_flush(uplink_encoder *e, uint8_t *to, size_t capacity, size_t *size) {
  return code(in(e)->flush({to, capacity}, size));
}
size_t uplink_encoder_waiting(const uplink_encoder *e) {
  return in(e)->waiting();
}
uplink_error uplink_encoder_ack(uplink_encoder *e, const uint8_t *data, size_t n, size_t *used) {
  return code(in(e)->ack({data, n}, used));
}
uint64_t uplink_encoder_next(const uplink_encoder *e) {
  return in(e)->next();
}

uplink_error uplink_decoder_create(const uplink_allocator *a, const uplink_schema *s,
                                   const uplink_decoder_config *c, uplink_decoder **out) {
  uplink_decoder_config from;
  uplink::DecoderConfig own;
  *out = nullptr;
  if (!load(c, &from) || !shared_config(from, &own)) return UPLINK_INVALID;
  own.deliver_late = from.deliver_late != 0;
  uplink::Decoder *d = nullptr;
  Error e = uplink::Decoder::create(of(a), *in(s), own, &d);
  *out = made<uplink_decoder>(d);
  return code(e);
}
void uplink_decoder_destroy(uplink_decoder *d) {
  uplink::Decoder::destroy(gone<uplink::Decoder>(d));
}

uplink_error uplink_decoder_decode(uplink_decoder *d, const uint8_t *payload, size_t n, uplink_call *calls,
                                   size_t *count) {
  uplink::Call own[uplink::max_calls];
  Error e = in(d)->decode({payload, n}, own, count);
  if (*count > 0 && calls->struct_size < sizeof(uplink_call)) return UPLINK_INVALID;
  for (size_t i = 0; i < *count; i++) {
    uplink_call *call = element(calls, i);
    *call = {calls->struct_size, own[i].late ? 1 : 0, own[i].sequence, own[i].missed,
             as<const uplink_frame>(own[i].frame)};
  }
  return code(e);
}

size_t uplink_decoder_ack(const uplink_decoder *d, uint8_t *to) {
  return in(d)->ack(to);
}
void uplink_decoder_ask_reset(uplink_decoder *d) {
  in(d)->ask_reset();
}
int32_t uplink_rpc_of(const uint8_t *payload, size_t n) {
  return uplink::rpc_of({payload, n});
}
