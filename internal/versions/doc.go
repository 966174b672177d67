// Package versions lets two ends with different versions of an RPC or of an object understand each
// other: the receiver decodes with the sender's schema, which it derives from the descriptions of
// the fields, and converts what it decodes to its own. Fields are matched by name.
package versions
