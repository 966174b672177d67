//go:build !cgo

package world

// Without cgo the build fails here, with an identifier that names the reason.
var _ = the_physics_engine_is_in_C__install_gcc_and_libode_dev__and_do_not_set_CGO_ENABLED_to_0
