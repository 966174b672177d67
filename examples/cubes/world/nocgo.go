//go:build !cgo

package world

// The build ends here, with a name that says why: without a C compiler Go leaves out all that needs one.
var _ = the_physics_engine_is_in_C__install_gcc_and_libode_dev__and_do_not_set_CGO_ENABLED_to_0
