/* A program in C: one call from an encoder to a decoder. */
#include <stdio.h>
#include <string.h>

#include "uplink/uplink.h"

#define CHECK(x)                                                                                             \
  do {                                                                                                       \
    if (!(x)) {                                                                                              \
      printf("line %d: %s\n", __LINE__, #x);                                                                 \
      return 1;                                                                                              \
    }                                                                                                        \
  } while (0)

int main(void) {
  uplink_field fields[3];
  uplink_schema *schema = NULL;
  uplink_frame *frame = NULL;
  uplink_encoder *encoder = NULL;
  uplink_decoder *decoder = NULL;
  uplink_encoder_config ec;
  uplink_decoder_config dc;
  uplink_call calls[UPLINK_MAX_CALLS];
  double at[3] = {1.5, -2.25, 300};
  uint64_t buttons = 5;
  uint8_t payload[1200], ack[UPLINK_MAX_ACK];
  size_t n = 0, count = 0, used = 0;

  UPLINK_INIT_ARRAY(fields);
  UPLINK_INIT(ec);
  UPLINK_INIT(dc);
  UPLINK_INIT_ARRAY(calls);
  fields[0].name = "Location";
  fields[0].kind = UPLINK_VEC3;
  fields[0].resolution = 0.25;
  fields[1].name = "Buttons";
  fields[1].kind = UPLINK_BITS;
  fields[1].width = 8;
  fields[2].name = "Chat";
  fields[2].kind = UPLINK_BYTES;
  fields[2].size = 40;
  ec.codec = dc.codec = UPLINK_ADAPTIVE;

  CHECK(uplink_schema_create(NULL, "Move", 60, fields, 3, &schema, NULL) == UPLINK_OK);
  CHECK(uplink_frame_create(NULL, schema, &frame) == UPLINK_OK);
  CHECK(uplink_encoder_create(NULL, schema, &ec, &encoder) == UPLINK_OK);
  CHECK(uplink_decoder_create(NULL, schema, &dc, &decoder) == UPLINK_OK);
  CHECK(uplink_frame_set(frame, 0, at, 3) == UPLINK_OK);
  CHECK(uplink_frame_set_integers(frame, 1, &buttons, 1) == UPLINK_OK);
  CHECK(uplink_frame_set_bytes(frame, 2, (const uint8_t *)"hello", 5) == UPLINK_OK);
  CHECK(uplink_encoder_encode(encoder, frame, payload, sizeof payload, &n) == UPLINK_OK);
  CHECK(uplink_rpc_of(payload, n) == 0);
  CHECK(uplink_decoder_decode(decoder, payload, n, calls, &count) == UPLINK_OK);
  CHECK(count == 1 && calls[0].sequence == 0 && calls[0].missed == 0);
  {
    double got[3] = {0, 0, 0};
    uint64_t pressed = 0;
    const uint8_t *chat = NULL;
    CHECK(uplink_frame_get(calls[0].frame, 0, got, 3) == UPLINK_OK);
    CHECK(got[0] == 1.5 && got[1] == -2.25 && got[2] == 300);
    CHECK(uplink_frame_get_integers(calls[0].frame, 1, &pressed, 1) == UPLINK_OK && pressed == 5);
    CHECK(uplink_frame_get_bytes(calls[0].frame, 2, &chat, &n) == UPLINK_OK && n == 5 &&
          memcmp(chat, "hello", 5) == 0);
  }
  n = uplink_decoder_ack(decoder, ack);
  CHECK(uplink_encoder_ack(encoder, ack, n, &used) == UPLINK_OK && used == n);
  CHECK(uplink_decoder_decode(decoder, payload, 3, calls, &count) != UPLINK_OK);
  CHECK(strcmp(uplink_error_text(UPLINK_MALFORMED), "the bytes are malformed") == 0);
  CHECK(strcmp(uplink_version(), "0.1.0") == 0);
  fields[1].width = 65;
  {
    uplink_schema *wrong = NULL;
    size_t field = 0;
    CHECK(uplink_schema_create(NULL, "Move", 60, fields, 3, &wrong, &field) == UPLINK_INVALID && field == 1);
  }
  {
    /* of a program that was built with a newer header */
    struct {
      uplink_field known;
      int32_t added;
    } newer[1];
    uplink_schema *known = NULL;
    memset(newer, 0, sizeof newer);
    newer[0].known = fields[0];
    newer[0].known.struct_size = sizeof newer[0];
    CHECK(uplink_schema_create(NULL, "Move", 60, &newer[0].known, 1, &known, NULL) == UPLINK_OK);
    uplink_schema_destroy(known);
    newer[0].added = 1;
    CHECK(uplink_schema_create(NULL, "Move", 60, &newer[0].known, 1, &known, NULL) == UPLINK_INVALID);
  }
  uplink_decoder_destroy(decoder);
  uplink_encoder_destroy(encoder);
  uplink_frame_destroy(frame);
  uplink_schema_destroy(schema);
  return 0;
}
