package embedded_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/aggregate"
	"github.com/effectd/effectd/aggregate/ledger/peer"
	"github.com/effectd/effectd/embedded/natsserver"
	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// desk is a writer that answers peers and dispatches nothing: what a test does not
// claim stays admitted.
type desk struct {
	*party
	x       *external
	id      events.LedgerID
	service *service
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := newService(t)
	r := running(t, s)
	r.stop()
	d := &desk{x: r.external(), id: r.home().LedgerID(), service: s}
	d.party = d.x.party(d.id, "writer")
	d.answers(d.x)
	d.answered(d.remote())
	return d
}

// remote asks the desk, on a connection of its own.
func (d *desk) remote() *peer.Remote {
	return peer.NewRemote(peer.Config{Logger: logger()}, d.x.connect().Conn(), d.log, d.State())
}

// answered returns once peers are.
func (d *desk) answered(r *peer.Remote) {
	d.x.Helper()
	eventually(d.x, "peers are answered", func() bool {
		_, err := r.Do(d.x.Context(), events.SystemActor, aggregate.Abandon{EffectID: "none", IntentSHA256: events.ZeroDigest})
		return err == nil
	})
}

// admitted is a new effect that waits for its claim.
func (d *desk) admitted(causal string) *aggregate.Effect {
	d.x.Helper()
	o := do(d.x, d.Ledger, producer.Actor(), prepare(d.x, producer, charge("r", causal, 5), true))
	return o.State.Effect(o.EffectID)
}

// claimOf is a claim that would be won.
func claimOf(e *aggregate.Effect, nonce string) aggregate.ClaimEffect {
	return aggregate.ClaimEffect{EffectID: e.ID, IntentSHA256: e.IntentSHA256(), Dispatcher: events.Dispatcher{Node: "n", Incarnation: "i"},
		NonceSHA256: aggregate.DigestNonce(nonce), DeadlineMS: 60_000}
}

func (d *desk) about(e *aggregate.Effect) wire.NodeEffect {
	return wire.NodeEffect{V: events.Format, LedgerID: d.id, EffectID: e.ID, IntentSHA256: e.IntentSHA256()}
}

// wireClaim is claimOf as it stands on the wire.
func (d *desk) wireClaim(e *aggregate.Effect, nonce string) string {
	c := claimOf(e, nonce)
	return string(events.CanonicalOf(wire.ClaimRequest{NodeEffect: d.about(e), Dispatcher: c.Dispatcher, NonceSHA256: c.NonceSHA256, DeadlineMS: c.DeadlineMS}))
}

// A request with one thing wrong is refused and leaves nothing, also about an effect
// that is there to be claimed or settled, and by who knows the nonce.
func TestMalformedPeers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	conn := d.x.connect().Conn()
	open, claimed := d.admitted("open"), d.admitted("claimed")
	do(t, d.Ledger, events.SystemActor, claimOf(claimed, "secret"))
	claim := d.wireClaim(open, "mine")
	result := string(events.CanonicalOf(wire.ResultRequest{NodeEffect: d.about(claimed), Nonce: "secret",
		Result: wire.SendResult{Outcome: events.OutcomeFailed, Reason: events.ReasonClassified, Evidence: events.Evidence{Source: "adapter", Detail: "d"}}}))
	before := d.State().Seq()
	for name, c := range map[string]struct {
		verb           wire.NodeVerb
		body, old, new string
	}{
		"null":                 {wire.NodeClaim, "null", "", ""},
		"no incarnation":       {wire.NodeClaim, claim, `"incarnation":"i"`, `"incarnation":""`},
		"no node":              {wire.NodeClaim, claim, `"node":"n"`, `"node":""`},
		"a long node":          {wire.NodeClaim, claim, `"node":"n"`, `"node":"` + strings.Repeat("n", events.MaxID+1) + `"`},
		"no digest of a nonce": {wire.NodeClaim, claim, string(aggregate.DigestNonce("mine")), "mine"},
		"no deadline":          {wire.NodeClaim, claim, `"deadline_ms":60000`, `"deadline_ms":0`},
		"a deadline before":    {wire.NodeClaim, claim, `"deadline_ms":60000`, `"deadline_ms":-1`},
		"a deadline never":     {wire.NodeClaim, claim, `"deadline_ms":60000`, `"deadline_ms":9007199254740991`},
		"a credential":         {wire.NodeClaim, claim, `{`, `{"credential_sha256":"hunter2",`},
		"no intent":            {wire.NodeClaim, claim, string(open.IntentSHA256()), "x"},
		"no known outcome":     {wire.NodeResult, result, `"outcome":"failed"`, `"outcome":"won"`},
		"no known means":       {wire.NodeResult, result, `"outcome":"failed"`, `"means":"magic","outcome":"succeeded"`},
		"no reason":            {wire.NodeResult, result, `"reason":"classified"`, `"reason":""`},
		"no source":            {wire.NodeResult, result, `"source":"adapter"`, `"source":""`},
		"no nonce":             {wire.NodeResult, result, `"nonce":"secret"`, `"nonce":""`},
		"a long reason":        {wire.NodeResult, result, `"reason":"classified"`, `"reason":"` + strings.Repeat("x", events.MaxID+1) + `"`},
	} {
		body := c.body
		if c.old != "" {
			if body = strings.Replace(c.body, c.old, c.new, 1); body == c.body {
				t.Fatalf("%s changes nothing in %s", name, body)
			}
		}
		m, err := conn.Request(wire.NodeSubject(d.id, c.verb), []byte(body), patience)
		if err != nil {
			t.Fatal(name, err)
		}
		var reply wire.ErrorReply
		if err := json.Unmarshal(m.Data, &reply); err != nil || reply.Error == nil || reply.Error.Code.Status() != 400 {
			t.Errorf("%s: %.200s", name, m.Data)
		}
		if strings.Contains(string(m.Data), "secret") || strings.Contains(string(m.Data), "hunter2") {
			t.Errorf("%s: the answer repeats a value: %.200s", name, m.Data)
		}
		if seq := d.State().Seq(); seq != before {
			t.Errorf("%s: %d entries were written", name, seq-before)
			before = seq
		}
	}
	// What they were all made from is taken, however it is spelled.
	spelled := strings.Replace(result, `"detail":"d"`, ` "named" : { "b":1.0, "a":"é" } , "detail":"d"`, 1)
	for verb, body := range map[wire.NodeVerb]string{wire.NodeClaim: claim, wire.NodeResult: spelled} {
		if m, err := conn.Request(wire.NodeSubject(d.id, verb), []byte(body), patience); err != nil || m.Header.Get(wire.HeaderError) != "" {
			t.Errorf("%s: %.200s %v", verb, m.Data, err)
		}
	}
	state := folded(t, readAll(t, d.log))
	if state.Effect(open.ID).Claim == nil || state.Effect(claimed.ID).Settled == nil {
		t.Error("a good request was not taken")
	}
}

// stranger is of the users' account, and no permission holds it back.
func (x *external) stranger() *nats.Conn {
	x.Helper()
	i := slices.IndexFunc(x.options.Nkeys, func(u *server.NkeyUser) bool { return u.Account.Name == natsserver.UsersAccount })
	x.options.Users = append(x.options.Users, &server.User{Username: "stranger", Password: "p", Account: x.options.Nkeys[i].Account})
	x.stop()
	x.start()
	conn, err := nats.Connect(x.server.ClientURL(), nats.UserInfo("stranger", "p"))
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(conn.Close)
	return conn
}

// The two accounts alone keep users and peers apart: nothing of effects.node.> is
// exported, whatever a user's permissions were.
func TestPeersInAnotherAccount(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	conn := d.x.stranger()
	seen, err := conn.SubscribeSync("effects.node.>")
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	d.answered(d.remote())
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := seen.Pending(); n != 0 || err != nil {
		t.Errorf("the users' account saw %d requests of peers: %v", n, err)
	}
	if err := seen.Unsubscribe(); err != nil { // or it would be who is asked
		t.Fatal(err)
	}
	e := d.admitted("c")
	before := d.State().Seq()
	if _, err := conn.Request(wire.NodeSubject(d.id, wire.NodeClaim), []byte(d.wireClaim(e, "n")), patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Error(err)
	}
	if d.State().Seq() != before {
		t.Error("a user's claim was written")
	}
}
