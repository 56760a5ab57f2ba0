// Package anchor is what is known of the log outside of it: last sequence, entry
// hash and fingerprint, in a file of its own that no rebuild deletes. It guards
// against what a damaged store does silently: truncate, skip, reuse numbers.
//
//	file: │ slot 0: mark, checksum │ slot 1: mark, checksum │   written in turns
//
// Invariants:
//
//	K1  An Ensure that returned nil is found after any crash, or a later mark is.
//	K2  A torn write harms the slot that is being written, never the other.
//	K3  The mark never goes back.
package anchor
