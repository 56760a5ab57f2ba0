package natsserver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// Executors serve their own operations, in a queue group, and answer the dispatcher.
func TestExecutor(t *testing.T) {
	one := newPerson(t, "main", "one", events.RoleExecutor, "charge", "refund")
	every := newPerson(t, "main", "every", events.RoleExecutor, AllOperations)
	s := startServer(t, one, every)
	dispatch := serviceConn(t, s, Dispatch)
	if _, err := dispatch.Request("effects.exec.main.refund", nil, patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("nobody serves: %v", err)
	}
	c := dialAs(t, s.ClientURL(), one)
	answer := func(m *nats.Msg) { _ = m.Respond(m.Data) }
	if _, err := c.QueueSubscribe("effects.exec.main.refund", "workers", answer); err != nil {
		t.Fatal(err)
	}
	c.unrefused(t, "own operation")
	for _, subject := range []string{"effects.exec.main.delete", "effects.exec.other.charge", "effects.exec.main.*", "effects.exec.>"} {
		c.forbidden(t, subject, func() error { _, err := c.QueueSubscribe(subject, "workers", answer); return err })
	}
	c.forbidden(t, "plain subscription", func() error { _, err := c.Subscribe("effects.exec.main.charge", answer); return err })
	m, err := dispatch.Request("effects.exec.main.refund", []byte("id"), patience)
	if err != nil || string(m.Data) != "id" {
		t.Fatalf("request: %v", err)
	}
	e := dialAs(t, s.ClientURL(), every)
	if _, err := e.QueueSubscribe("effects.exec.main.delete", "workers", answer); err != nil {
		t.Fatal(err)
	}
	e.unrefused(t, "any operation")
	e.forbidden(t, "another tenant", func() error { _, err := e.QueueSubscribe("effects.exec.other.delete", "workers", answer); return err })
}

// Stock micro clients see the service across the accounts.
func TestMicroMonitoring(t *testing.T) {
	p := newPerson(t, "main", "producer", events.RoleProducer)
	s := startServer(t, p)
	svc, err := micro.AddService(serviceConn(t, s, Answer), micro.Config{Name: wire.ServiceName, Version: "1.0.0",
		Endpoint: &micro.EndpointConfig{Subject: wire.APIPattern(wire.EffectGet), Handler: micro.HandlerFunc(func(r micro.Request) { _ = r.Error("404", "unknown_effect", nil) })}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Stop() })
	c := dialAs(t, s.ClientURL(), p)
	for _, subject := range []string{"$SRV.PING", "$SRV.INFO.effectd", "$SRV.STATS.effectd", "$SRV.INFO.effectd." + svc.Info().ID} {
		if _, err := c.Request(subject, nil, patience); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
	m, err := c.Request(wire.APISubject("main", "producer", wire.EffectGet), nil, patience)
	if err != nil || m.Header.Get(wire.HeaderErrorCode) != "404" {
		t.Errorf("error headers: %v %v", m, err)
	}
	if _, err := c.Request(wire.APISubject("main", "producer", wire.EffectList), nil, patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody serves: %v", err)
	}
}

func TestAuditConsumerNamesDiffer(t *testing.T) {
	if a, b := AuditConsumer("a-b", "c"), AuditConsumer("a", "b-c"); a == b {
		t.Errorf("two auditors share %s", a)
	}
	if got := AuditConsumer("main", "auditor"); got != "audit-main-auditor" {
		t.Error(got)
	}
}

func BenchmarkRequest(b *testing.B) {
	p := newPerson(b, "main", "producer", events.RoleProducer)
	s := startServer(b, p)
	serveAPI(b, serviceConn(b, s, Answer))
	c := dialAs(b, s.ClientURL(), p)
	body := make([]byte, 512)
	for _, width := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("in-flight=%d", width), func(b *testing.B) {
			b.SetParallelism(width)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Request("effects.api.main.producer.effect.submit", body, 10*time.Second); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
