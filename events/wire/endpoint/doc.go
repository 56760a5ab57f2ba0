// Package endpoint serves the verbs of a ledger over NATS request/reply, as the
// micro service "effectd" (SPEC 6, 12).
//
//	effects.api.<tenant>.<principal>.<verb> ─▶ Service ─▶ Serve, one goroutine each ─▶ reply inbox
//	                                              │
//	                                              └─▶ at the bound: quota_exceeded; stopping: ledger_unavailable
//
// Invariants:
//
//	N1  Who asks is what the subject says, which the NATS server enforced; a body
//	    is never asked about it.
//	N2  A reply goes to an inbox or nowhere: a request that names another reply
//	    subject, such as that of the log, is dropped.
//	N3  Every other request gets exactly one answer, whatever Serve does.
//	N4  After Stop returns, no Serve runs and none will be started.
package endpoint
