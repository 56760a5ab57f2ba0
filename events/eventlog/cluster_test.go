package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sync/errgroup"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// cluster is three servers in this process.
type cluster struct {
	options []*server.Options
	servers []*server.Server
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	var routes []string
	for range 3 {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", freePort(t)))
	}
	for i, route := range routes {
		port := 0
		if _, err := fmt.Sscanf(route, "nats://127.0.0.1:%d", &port); err != nil {
			t.Fatal(err)
		}
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: freePort(t), JetStream: true, StoreDir: t.TempDir(),
			SyncAlways: true, NoSigs: true, NoLog: true, JetStreamMaxStore: 2 << 30, JetStreamMaxMemory: 64 << 20,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}, Routes: server.RoutesFromStr(strings.Join(routes, ",")),
		})
		c.servers = append(c.servers, nil)
		c.start(t, i)
	}
	t.Cleanup(func() {
		for _, srv := range c.servers {
			stopServer(srv)
		}
	})
	await(t, "a meta leader with three peers", func() bool {
		for _, srv := range c.servers {
			if srv.JetStreamIsLeader() && len(srv.JetStreamClusterPeers()) == 3 {
				return true
			}
		}
		return false
	})
	return c
}

func (c *cluster) start(t *testing.T, i int) {
	t.Helper()
	srv, err := server.NewServer(c.options[i].Clone())
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	c.servers[i] = srv
}

func (c *cluster) urls() string {
	var urls []string
	for _, o := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
	}
	return strings.Join(urls, ",")
}

// leader is the server that leads the log.
func (c *cluster) leader(t *testing.T) int {
	found := -1
	await(t, "a leader of the log", func() bool {
		for i, srv := range c.servers {
			if srv.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, wire.LogStream) {
				found = i
			}
		}
		return found >= 0
	})
	return found
}

// L1, L2, L3 on three replicas: writers race while the leader is restarted.
func TestClusterLosesItsLeader(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const last = 120
	c := startCluster(t)
	cfg := Config{LedgerID: ledger, Replicas: 3, AckWait: 500 * time.Millisecond}
	writers := []*Stream{create(t, c.urls(), cfg)}
	for range 2 {
		s, err := Attach(testContext(t), connect(t, c.urls()), cfg)
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, s)
	}
	var won [last + 1]atomic.Int32
	var tailed []events.Stored
	half := make(chan struct{})
	group, ctx := errgroup.WithContext(testContext(t))
	group.Go(func() error {
		err := writers[0].Tail(ctx, 1, events.ZeroDigest, func(e events.Stored) error {
			tailed = append(tailed, e)
			switch e.Seq {
			case last / 2:
				close(half)
			case last:
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	for w, s := range writers {
		group.Go(func() error { return race(ctx, s, string(rune('a'+w)), last, &won) })
	}
	select {
	case <-half:
		leader := c.leader(t)
		stopServer(c.servers[leader])
		c.start(t, leader)
	case <-ctx.Done():
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	sameEntries(t, mustReadAll(t, writers[0]), tailed)
	for _, e := range tailed {
		if n := won[e.Seq].Load(); n != 1 {
			t.Fatalf("entry %d has %d winners", e.Seq, n)
		}
	}
	absent, err := writers[0].absentAtLeader(context.WithoutCancel(ctx), last+1)
	if err != nil || !absent {
		t.Fatal(absent, err)
	}
	absent, err = writers[0].absent(context.WithoutCancel(ctx), last)
	if err != nil || absent {
		t.Fatal(absent, err)
	}
}
