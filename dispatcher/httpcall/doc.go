// Package httpcall sends one HTTP request, once, and says what is proven about it.
//
//	Do ── encode ── dial (TCP, TLS) ──┬── deadline? ── one Write ──▶ service
//	                                  └── read 1xx…, head, body ◀── service
//
// It speaks HTTP/1.1 on a connection of its own and uses from net/http only the
// encoder and the parser. An http.Transport has a pool, a retry, a proxy and a
// redirect to be switched off one by one, and resends a request that carries an
// Idempotency-Key when a reused connection closes; here no code exists that
// could send a second time. HTTP/2 is left out for the same reason: its streams
// may be refused and replayed, its flow control keeps bytes back in the client,
// and one request needs none of it.
//
// Invariants:
//
//	H1  One call opens at most one connection that carries bytes of the request,
//	    and writes the request to it at most once. (Several addresses may be
//	    dialled; the connections that lose the race carry nothing.)
//	H2  The deadline is read from the monotonic clock immediately before the first
//	    byte. Only then is the request handed to the kernel.
//	H3  NotSent if and only if the kernel took not one byte of the request. Under
//	    TLS the handshake is no part of the request.
//	H4  Answered only with a complete response that was well formed and within the
//	    bounds. Everything else after the first byte is Lost.
//	H5  After a call that did not end in a complete exchange the connection is
//	    reset, so that nothing waits in a buffer to be delivered after the deadline.
//	H6  No redirect, proxy, retry, Expect: 100-continue, cookie, connection reuse or
//	    decompression, whatever the environment or the service says.
//	H7  Do returns by the deadline and leaves no goroutine behind.
//	H8  Details name the fault, never a value of the request or of the answer.
//
// What each end proves:
//
//	what happened                                  answer                   why
//	request not buildable                          NotSent                  nothing was dialled
//	name not resolved, refused, unreachable        NotSent                  no connection, no byte
//	TLS handshake or certificate failed            NotSent                  only handshake bytes left
//	deadline or cancellation before the first byte NotSent                  checked before the one Write (H2)
//	the Write failed and the kernel took 0 bytes   NotSent                  reset by the peer before the request
//	part of the request was taken, then failure    Lost response_lost       the service may act on a part
//	connection ended or reset, no complete answer  Lost response_lost       it may have acted before it died
//	body shorter than declared, chunks cut         Lost response_lost       the outcome may stand in the missing part
//	deadline after the first byte                  Lost timeout             it may still act
//	cancelled after the first byte                 Lost shutdown            by the cause of [Options.Shutdown]
//	                                               Lost adapter_error       by any other cause
//	not HTTP/1.x, malformed, 101                   Lost adapter_error       not readable as an answer
//	head or body above its bound                   Lost adapter_error       not read to its end
//	bytes after the end of the response            Lost adapter_error       framing cannot be trusted
//	any complete response, 3xx 4xx 5xx included    Answered                 the contract says what it means
//	complete response before the whole request     Answered                 the service decided on what it saw
//
// A body that is delimited by the end of the connection is complete when the
// connection ends in order (RFC 9112, 8); that is the weakest of these proofs.
package httpcall
