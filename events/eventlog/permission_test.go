package eventlog

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/effectd/effectd/events"
)

// An auditor gets by with direct get and stream info, and cannot write; it
// learns why.
func TestAuditor(t *testing.T) {
	srv := startServer(t, t.TempDir(),
		&server.User{Username: "owner", Password: "p"},
		&server.User{Username: "auditor", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.STREAM.INFO.EFFECTS", "$JS.API.DIRECT.GET.EFFECTS"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.main.auditor.>"}},
		}})
	owner, err := Create(testContext(t), connect(t, srv.ClientURL(), nats.UserInfo("owner", "p")), Config{LedgerID: ledger})
	if err != nil {
		t.Fatal(err)
	}
	list := entries(11, "a", 0)
	appendAll(t, owner, list[:10])
	js := connect(t, srv.ClientURL(), nats.UserInfo("auditor", "p"), nats.CustomInboxPrefix("_INBOX.main.auditor"),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	auditor, err := Attach(testContext(t), js, Config{LedgerID: ledger, AckWait: 50 * time.Millisecond, Poll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	sameEntries(t, mustReadAll(t, auditor), list[:10])
	got, err := collect(testContext(t), auditor, 1, events.ZeroDigest, 10)
	wantError(t, err, errEnough)
	sameEntries(t, got, list[:10])

	ctx, cancel := context.WithTimeout(testContext(t), 500*time.Millisecond)
	defer cancel()
	err = auditor.Append(ctx, list[10])
	wantError(t, err, ErrAppendUnknown)
	if !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
		t.Fatal(err)
	}
	sameEntries(t, mustReadAll(t, owner), list[:10])
}
