package capture

import "io"

// CreateOn is Create with files that open creates.
func CreateOn(path string, cfg Config, open func(name string) (io.WriteCloser, error)) (*Writer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return newWriter(path, cfg, open)
}
