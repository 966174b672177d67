module github.com/uplink-rpc/uplink/examples/cubes

go 1.26.0

replace github.com/uplink-rpc/uplink => ../../

require (
	github.com/spf13/cobra v1.10.2
	github.com/uplink-rpc/uplink v0.0.0-00010101000000-000000000000
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/vmihailenco/msgpack/v5 v5.4.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
)
