package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

// profiler writes a CPU profile of a run, or nothing if it has no path.
type profiler struct {
	path string
	file *os.File
}

func (p *profiler) start() (err error) {
	if p.path == "" {
		return nil
	}
	if p.file, err = os.Create(p.path); err != nil {
		return fmt.Errorf("--cpuprofile: %w", err)
	}
	return pprof.StartCPUProfile(p.file)
}

func (p *profiler) stop() error {
	if p.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return p.file.Close()
}
