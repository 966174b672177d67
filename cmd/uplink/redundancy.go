package main

import (
	"fmt"
	"strconv"

	"github.com/uplink-rpc/uplink/rpcdelta"
)

// redundancy is a flag: how many older frames ride along in each payload.
type redundancy int

func (r *redundancy) String() string {
	switch *r {
	case rpcdelta.RedundancyAuto:
		return "auto"
	case rpcdelta.RedundancyOff:
		return "off"
	}
	return strconv.Itoa(int(*r))
}

func (r *redundancy) Type() string { return "frames" }

func (r *redundancy) Set(text string) error {
	switch text {
	case "auto":
		*r = rpcdelta.RedundancyAuto
		return nil
	case "off", "0":
		*r = rpcdelta.RedundancyOff
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > rpcdelta.MaxRedundancy {
		return fmt.Errorf("want auto, off or 1 to %d older frames", rpcdelta.MaxRedundancy)
	}
	*r = redundancy(n)
	return nil
}
