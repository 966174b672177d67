// Package trace reads and writes recorded play: the frames of an RPC as rows of a CSV file, and
// schema files that describe which columns form which fields.
//
// A trace is a CSV file, plain (.csv) or compressed (.csv.gz), with a header row and one row per
// frame. Its numbers are not quantized. The schema file NAME.schema.json in the same directory
// names the columns of each field. Other columns are ignored.
//
//	{"rpc": "ServerMove", "rate_hz": 60, "fields": [
//	  {"name": "Location", "kind": "vec3", "columns": ["pos_x_u", "pos_y_u", "pos_z_u"], "resolution": 0.03125},
//	  {"name": "Buttons",  "kind": "bits", "columns": ["buttons"], "width": 32}]}
//
// [Load] reads a whole trace, a [Reader] one row at a time. A [Writer] records frames as a trace.
// The memory for reading is limited, whatever a file contains.
package trace
