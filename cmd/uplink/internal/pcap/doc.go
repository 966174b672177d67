// Package pcap copies capture files, pcap and pcapng, and changes the UDP datagrams in them. It reads what strangers
// recorded: no input panics, and none takes more memory than a packet may have.
package pcap
