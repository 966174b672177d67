//go:build unix && !(linux && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x))

package udp

import "syscall"

// truncated is the flag of a datagram that did not fit.
const truncated = syscall.MSG_TRUNC
