package main

import (
	"fmt"
	"io"
	"os"

	"github.com/uplink-rpc/uplink/rpcdelta/prior"
)

// priorFlag is the name of the flag that names a prior's file.
const priorFlag = "prior"

// loadPrior loads the prior that the flag names, or gives nil if it names none.
func loadPrior(path string) (*prior.Prior, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", priorFlag, err)
	}
	defer f.Close() //nolint:errcheck // it is read only
	data, err := io.ReadAll(io.LimitReader(f, prior.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", priorFlag, err)
	}
	p, err := prior.Parse(data)
	if err != nil {
		return nil, hintedError{fmt.Errorf("--%s %s: %w", priorFlag, path, err), "uplink train TRACE... -o FILE makes a prior"}
	}
	return p, nil
}

func loadPriors(paths []string) (priors []*prior.Prior, err error) {
	for _, path := range paths {
		p, err := loadPrior(path)
		if err != nil {
			return nil, err
		}
		if p != nil {
			priors = append(priors, p)
		}
	}
	return priors, nil
}
