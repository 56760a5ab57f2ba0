package embedded_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate/ledger/peer"
	"github.com/effectd/effectd/embedded/home"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// fragile is a way to the server that is deaf once the client has said a word: the
// server hears it, and its answer is lost. A cut makes it whole, and keeps it shut
// until it is opened.
type fragile struct {
	listener net.Listener
	server   string
	word     []byte
	wg       sync.WaitGroup

	mu    sync.Mutex
	deaf  bool
	whole bool
	shut  bool
	conns []net.Conn
}

func newFragile(t *testing.T, server, word string) *fragile {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fragile{listener: l, server: server, word: []byte(word)}
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		l.Close()
		f.cut()
		f.wg.Wait()
	})
	return f
}

func (f *fragile) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		if !f.take(client) {
			client.Close()
		}
	}
}

func (f *fragile) take(client net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return false
	}
	server, err := net.Dial("tcp", f.server)
	if err != nil {
		return false
	}
	f.conns = append(f.conns, client, server)
	f.wg.Go(func() { pass(server, client, f.said) })
	f.wg.Go(func() { pass(client, server, f.heard) })
	return true
}

func pass(to, from net.Conn, filter func([]byte) []byte) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(filter(buf[:n])); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (f *fragile) said(b []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deaf = f.deaf || !f.whole && bytes.Contains(b, f.word)
	return b
}

func (f *fragile) heard(b []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaf {
		return nil
	}
	return b
}

// cut ends the connections.
func (f *fragile) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns, f.deaf, f.whole, f.shut = nil, false, true, true
}

func (f *fragile) open() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = false
}

// dial connects by it as the ledger does.
func (f *fragile) dial(x *external) *nats.Conn {
	x.Helper()
	keys, err := home.LoadServiceKeys(x.keyFile)
	if err != nil {
		x.Fatal(err)
	}
	conn, err := natsserver.Dial(x.Context(), "nats://"+f.listener.Addr().String(), natsserver.Ledger, keys[natsserver.Ledger], logger())
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(conn.Close)
	return conn
}

// The connection takes a claim to the writer, loses the answer and breaks. The claim
// is in the log, and is never fired: on the new connection its winner proves that.
func TestCutBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.x.outpost(d.id, 2*time.Second)
	f := newFragile(t, d.x.server.Addr().String(), wire.NodeSubject(d.id, wire.NodeClaim))
	o.line.Conn = f.dial(d.x)
	e := d.admitted("cut").ID
	o.dispatches(t)
	eventually(t, "the claim is in the log", func() bool { return d.State().Effect(e).Claim != nil })
	f.cut()
	f.open()
	eventually(t, "it settles", func() bool { return d.State().Effect(e).Settled != nil })
	if got := d.State().Effect(e); got.Settled.Outcome != events.OutcomeNoEffect || got.Settled.Reason != events.ReasonNotSent || got.Claim.Dispatcher != o.self {
		t.Fatalf("%+v %+v", got.Settled, got.Claim)
	}
	d.service.served(t, 0)
	after := d.admitted("after").ID
	eventually(t, "the next one settles", func() bool { return d.State().Effect(after).Settled != nil })
	if got := d.State().Effect(after).Settled; got.Outcome != events.OutcomeSucceeded {
		t.Fatalf("%+v", got)
	}
	d.service.served(t, 1)
	entries := readAll(t, d.log)
	if n := count(entries, events.TypeDispatched, e); n != 1 {
		t.Fatalf("%d claims", n)
	}
	folded(t, entries)
}

// What cannot be asked at once is never asked later: the writer is there all the
// while, and the way to it breaks and comes back.
func TestPeersAskNothingLate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.admitted("c") // before the remote, which does not read on
	f := newFragile(t, d.x.server.Addr().String(), "no word")
	conn := f.dial(d.x)
	remote := peer.NewRemote(peer.Config{Timeout: 2 * time.Second, Logger: logger()}, conn, d.log, d.State())
	d.answered(remote)
	f.cut()
	eventually(t, "the connection is lost", conn.IsReconnecting)
	_, err := remote.Do(t.Context(), events.SystemActor, claimOf(e, "n"))
	refusedWith(t, err, wire.CommitUnknown)
	f.open()
	d.answered(remote) // on the connection that would have kept the claim, and sent it first
	if n := count(readAll(t, d.log), events.TypeDispatched, ""); n != 0 {
		t.Fatalf("%d claims were asked late", n)
	}
}

// A claim that is asked for again, with the same nonce, is won once. The other
// answers show it as the asker's own, who can then prove that it sent nothing.
func TestClaimAskedAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	o := d.x.outpost(d.id, 0)
	e := d.admitted("c")
	eventually(t, "the outpost sees it", func() bool { return o.State().Effect(e.ID) != nil })
	c := claimOf(e, "n")
	var won atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			got, err := o.Do(t.Context(), events.SystemActor, c)
			if err != nil || got.State.Effect(e.ID).Claim.NonceSHA256 != c.NonceSHA256 {
				t.Error(err)
			}
			if got.Claimed {
				won.Add(1)
			} else if !got.Repeat {
				t.Errorf("%+v", got.Decision)
			}
		})
	}
	group.Wait()
	if n := count(readAll(t, d.log), events.TypeDispatched, ""); won.Load() != 1 || n != 1 {
		t.Fatalf("won %d times by %d claims", won.Load(), n)
	}
}
