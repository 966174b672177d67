/* Mistakes that the checks of UPLINK_CHECKS find: the program ends with a message. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "uplink/uplink.h"

static void on_abort(int number) {
  (void)number;
  _Exit(0); /* the mistake was found */
}

int main(int argc, char **argv) {
  uplink_field field;
  uplink_schema *schema = NULL;
  uplink_frame *frame = NULL;
  uplink_encoder *encoder = NULL;
  uplink_encoder_config config;
  uint8_t payload[64];
  size_t n = 0;
  double value = 1;

  UPLINK_INIT(field);
  UPLINK_INIT(config);
  field.name = "Throttle";
  field.kind = UPLINK_SCALAR;
  field.resolution = 0.25;
  if (argc != 2 || uplink_schema_create(NULL, "Move", 60, &field, 1, &schema, NULL) != UPLINK_OK ||
      uplink_frame_create(NULL, schema, &frame) != UPLINK_OK ||
      uplink_encoder_create(NULL, schema, &config, &encoder) != UPLINK_OK ||
      uplink_frame_set(frame, 0, &value, 1) != UPLINK_OK ||
      uplink_encoder_encode(encoder, frame, payload, sizeof payload, &n) != UPLINK_OK)
    return 1;
  signal(SIGABRT, on_abort);
  switch (atoi(argv[1])) {
  case 0:
    uplink_frame_set(NULL, 0, &value, 1);
    break;
  case 1:
    uplink_encoder_destroy(encoder);
    uplink_encoder_next(encoder);
    break;
  case 2:
    uplink_encoder_destroy(encoder);
    uplink_encoder_destroy(encoder);
    break;
  case 3:
    uplink_encoder_destroy((uplink_encoder *)schema);
    break;
  case 4:
    uplink_encoder_encode((uplink_encoder *)schema, frame, payload, sizeof payload, &n);
    break;
  case 5:
    field.struct_size = 0;
    uplink_schema_create(NULL, "Move", 60, &field, 1, &schema, NULL);
    break;
  case 6:
    uplink_encoder_destroy((uplink_encoder *)&value);
    break;
  default:
    break;
  }
  printf("the mistake %s was not found\n", argv[1]);
  return 1;
}
