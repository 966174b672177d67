// Package field contains tests on the network of a real kernel: network namespaces with Ethernet
// links and a router or a tunnel between them. TestDemo plays the demo world of "uplink ds --world"
// in each scenario of [scenarios], with the program player and with native/examples/world.cpp, as
// processes. The other tests have server and client in their own process. .ci/field builds the
// programs and runs the tests, as root, in namespaces that end with them.
package field
