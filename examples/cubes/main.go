// Cubes: the world of the networked-physics articles, simulated by ODE.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "cubes:", err)
		os.Exit(1)
	}
}
