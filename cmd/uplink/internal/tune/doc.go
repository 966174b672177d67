// Package tune proposes what a schema and its streams should be for an error bound and a link.
package tune
