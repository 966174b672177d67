// Package field contains tests on the network of a real kernel: two network namespaces with an
// Ethernet link between them. .ci/field runs them, as root, in namespaces that end with the tests.
package field
