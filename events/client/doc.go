// Package client is the Go client for producers, operators and the command
// line: one connection of one principal, one method per verb (SPEC 6).
//
//	Submit(ctx, request) ─▶ effects.api.<tenant>.<principal>.effect.submit ─▶ reply, or
//	    *wire.Error      the ledger refused, with its code
//	    ErrDenied        the NATS server refused: this principal may not ask that
//	    ErrUnreachable   nobody served it; nothing happened
//	    ErrNoAnswer      (also an ErrUnreachable) it may have been served: ask
//	                     again with the same run_id and causal_id
//
// Invariants:
//
//	C1  A request leaves at once or never: nothing is buffered to be sent later.
//	C2  A request is sent once; the client repeats nothing by itself.
package client
