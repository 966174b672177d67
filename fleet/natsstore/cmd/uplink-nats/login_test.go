package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

var quiet = slog.New(slog.DiscardHandler)

// serves returns nil if the program with a login becomes ready.
func serves(t *testing.T, l login) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return run(ctx, &options{listen: "127.0.0.1:0", nats: l, replicas: 1}, quiet, func(url string) {
		go func() {
			defer cancel()
			await(t, url+"readyz", "ok\n")
		}()
	})
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// begin starts a NATS server until the test ends, by default on a free port.
func begin(t *testing.T, o *server.Options) string {
	t.Helper()
	o.Host, o.Port, o.JetStream, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", cmp.Or(o.Port, server.RANDOM_PORT), true, t.TempDir(), true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	return s.ClientURL()
}

// TestPassword connects to the NATS server of deploy/container: it admits nobody without the
// password, which the program reads from a file or from the environment.
func TestPassword(t *testing.T) {
	const password = "uplink-0123456789abcdef0123456789abcdef"
	t.Setenv("NATS_PASSWORD", password)
	o, err := server.ProcessConfigFile("../../../../deploy/container/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	if o.Host != "127.0.0.1" || o.Port != 4222 || !o.JetStream {
		t.Errorf("it listens on %s, port %d; JetStream: %v", o.Host, o.Port, o.JetStream)
	}
	o.Port = 0
	url := begin(t, o)
	for _, options := range [][]nats.Option{nil, {nats.UserInfo("uplink", "another")}, {nats.UserInfo("", password)}} {
		if nc, err := nats.Connect(url, options...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("without the password: %v, %v", nc, err)
		}
	}
	if err := serves(t, login{urls: url, user: "uplink", passwordFile: write(t, "password", password+"\n")}); err != nil {
		t.Errorf("from a file: %v", err)
	}
	t.Setenv(passwordVariable, password)
	if err := serves(t, login{urls: url, user: "uplink"}); err != nil {
		t.Errorf("from the environment: %v", err)
	}
}

// certificate writes a certificate and its key, signed by a parent or by itself.
func certificate(t *testing.T, parent *tls.Certificate) (cert tls.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: parent == nil, BasicConstraintsValid: true,
	}
	signer, by := c, key
	if parent != nil {
		signer, by = parent.Leaf, parent.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile = write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	keyFile = write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	if cert, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return cert, certFile, keyFile
}

// TestTLS connects to a NATS server with a certificate of an authority of its own, which requires
// one of the client.
func TestTLS(t *testing.T) {
	ca, caFile, _ := certificate(t, nil)
	ours, _, _ := certificate(t, &ca)
	_, certFile, keyFile := certificate(t, &ca)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Leaf)
	url := begin(t, &server.Options{TLSTimeout: 10, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{ours}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}})
	if err := serves(t, login{urls: url, ca: caFile, cert: certFile, key: keyFile}); err != nil {
		t.Error(err)
	}
	for name, options := range map[string][]nats.Option{"the authority": nil, "a certificate": {nats.RootCAs(caFile)}} {
		if nc, err := nats.Connect(url, options...); err == nil {
			nc.Close()
			t.Errorf("without %s: it connects", name)
		}
	}
}

// TestCredentials connects to a server that asks for a signature: the program sends the JWT of the
// file of credentials, and a signature with its seed.
func TestCredentials(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "fleet.creds", "-----BEGIN NATS USER JWT-----\na.j.wt\n------END NATS USER JWT------\n\n"+
		"-----BEGIN USER NKEY SEED-----\n"+string(seed)+"\n------END USER NKEY SEED------\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, `INFO {"server_id":"a","version":"2.11.0","headers":true,"max_payload":1048576,"auth_required":true,"nonce":"a nonce"}`+"\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		connected <- line
	}()
	options, err := (&login{urls: l.Addr().String(), creds: file}).options(quiet)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(l.Addr().String(), append(options, nats.RetryOnFailedConnect(true))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	defer l.Close()
	if line := <-connected; !strings.Contains(line, `"jwt":"a.j.wt"`) || !strings.Contains(line, `"sig":"`) {
		t.Errorf("it sends %s", line)
	}
}

// TestRedactedURLs: neither the log nor an error has a password or a token of a URL.
func TestRedactedURLs(t *testing.T) {
	const secret = "s3cr3t"
	for urls, want := range map[string]string{
		"nats://fleet:s3cr3t@10.0.0.1:4222":                   "nats://fleet:xxxxx@10.0.0.1:4222",
		"nats://s3cr3t@10.0.0.1":                              "nats://xxxxx@10.0.0.1",
		"fleet:s3cr3t@10.0.0.1:4222, tls://a:s3cr3t@10.0.0.2": "nats://fleet:xxxxx@10.0.0.1:4222,tls://a:xxxxx@10.0.0.2",
		"nats://10.0.0.1,nats://10.0.0.2":                     "nats://10.0.0.1,nats://10.0.0.2",
		"nats://10.0.0.1,nats://fleet:s3cr3t@10.0.0.2:port":   "nats://10.0.0.1,(invalid)",
		"nats://fleet:s3cr3t@:4222":                           "(invalid)",
		"nats://fleet:s3cr3t%zz@10.0.0.1":                     "(invalid)",
	} {
		l := login{urls: urls}
		if got := l.redacted(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := l.check(); (err != nil) != strings.Contains(want, "invalid") || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestReadableSecret warns of a password that everybody may read.
func TestReadableSecret(t *testing.T) {
	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	path := write(t, "password", "a password\n")
	for mode, want := range map[os.FileMode]string{0o600: "", 0o644: "file=" + path + " hint=\"-nats-password-file: chmod 600 "} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		said.Reset()
		password, err := (&login{passwordFile: path}).password(log)
		if err != nil || password != "a password" || !strings.Contains(said.String(), want) || want == "" && said.Len() != 0 {
			t.Errorf("mode %v: %q, %v, %s", mode, password, err, said.String())
		}
	}
}
