package lab

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// mayChange says why a request may change nothing. A page of another site can have a visitor's browser send requests
// here: it cannot add a header of its own, nor hide where it comes from, and if it has its own name point to this
// machine, the name is in Host.
func mayChange(r *http.Request) error {
	switch {
	case !onLoopback(r):
		return errors.New("read-only: settings can be changed on a loopback address alone, such as 127.0.0.1")
	case r.Header.Get("X-Uplink") != "1":
		return errors.New("the header X-Uplink: 1 is missing")
	case !isLoopbackHost(r.Host):
		return fmt.Errorf("the host %q is no name of the loopback address: use localhost or 127.0.0.1", r.Host)
	case !sameOrigin(r):
		return errors.New("the request comes from another site")
	}
	return nil
}

// onLoopback says whether the request came to a loopback address.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	ap, err := netip.ParseAddrPort(addr.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

func isLoopbackHost(hostport string) bool {
	u := url.URL{Host: hostport}
	host := u.Hostname()
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// sameOrigin says whether the browser, if it is one, was on a page of this server. Others send neither header.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host
}
