// Package field contains tests on the network of a real kernel: network namespaces with Ethernet
// links and a router between them. .ci/field runs them, as root, in namespaces that end with the
// tests.
package field
