// Package trace reads and writes recorded play: frames of an RPC as rows of a CSV file, and the schema files that say
// which columns make which fields.
//
// A trace is CSV, plain (.csv) or compressed (.csv.gz): a header row, then one row a frame, numbers as recorded. Beside
// NAME.csv or NAME.csv.gz lies NAME.schema.json, a schema whose fields name their columns. Columns that no field names
// are ignored.
//
//	{"rpc": "ServerMove", "rate_hz": 60, "fields": [
//	  {"name": "Location", "kind": "vec3", "columns": ["pos_x_u", "pos_y_u", "pos_z_u"], "resolution": 0.03125},
//	  {"name": "Buttons",  "kind": "bits", "columns": ["buttons"], "width": 32}]}
//
// [Load] reads a whole trace, a [Reader] one row at a time; a [Writer] records frames so that the record is a trace
// again. Traces are the user's own files: a row is bounded by memory only.
package trace
