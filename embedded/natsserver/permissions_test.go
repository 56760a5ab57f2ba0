package natsserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

var everyVerb = wire.Verbs()

// roleMatrix is written out, not computed: P producer, O operator, A approver,
// U auditor, E executor.
var roleMatrix = map[wire.Verb]string{
	wire.TaskOpen: "PO", wire.TaskCloseVerb: "PO", wire.TaskGet: "POU", wire.TaskList: "POU",
	wire.EffectPrepare: "P", wire.EffectAdmit: "P", wire.EffectSubmit: "P", wire.EffectWithdraw: "P",
	wire.EffectGet: "POAU", wire.EffectList: "POAU", wire.EffectHistory: "POAU", wire.LedgerConfirm: "O",
	wire.PermitPending: "A", wire.PermitApprove: "A", wire.PermitDeny: "A", wire.PermitRevoke: "O",
	wire.EffectReconcile: "O", wire.EffectSettle: "O", wire.EffectAcknowledge: "O",
	wire.RunCancel: "P", wire.RunFinish: "P", wire.RunGet: "P",
	wire.DenialsRead: "OU", wire.OperationList: "POAUE", wire.LedgerStatus: "POAUE",
}

func everyRole(t testing.TB) map[byte]person {
	return map[byte]person{
		'P': newPerson(t, "main", "producer", events.RoleProducer),
		'O': newPerson(t, "main", "operator", events.RoleOperator),
		'A': newPerson(t, "main", "approver", events.RoleApprover),
		'U': newPerson(t, "main", "auditor", events.RoleAuditor),
		'E': newPerson(t, "main", "executor", events.RoleExecutor, "charge"),
	}
}

// all starts a server with one user of every role, services and streams.
func all(t *testing.T) (s *Server, people map[byte]person, log jetstream.Stream) {
	people = everyRole(t)
	other := newPerson(t, "main", "other", events.RoleProducer)
	people['X'] = other
	var list []person
	for _, p := range people {
		list = append(list, p)
	}
	s = startServer(t, list...)
	serveAPI(t, serviceConn(t, s, Answer))
	return s, people, makeStreams(t, serviceConn(t, s, Ledger))
}

// N2: every verb by every role.
func TestEveryVerbByEveryRole(t *testing.T) {
	s, people, _ := all(t)
	for _, letter := range []byte("POAUE") {
		p := people[letter]
		t.Run(string(p.Role), func(t *testing.T) {
			c := dialAs(t, s.ClientURL(), p)
			var refused []wire.Verb
			for _, v := range everyVerb {
				subject := wire.APISubject(p.Tenant, p.Principal, v)
				if !slices.Contains([]byte(roleMatrix[v]), letter) {
					refused = append(refused, v)
					continue
				}
				m, err := c.Request(subject, nil, patience)
				if err != nil {
					t.Fatalf("%s: %v", v, err)
				}
				if string(m.Data) != subject {
					t.Errorf("%s: answered as %s", v, m.Data)
				}
			}
			c.unrefused(t, "own verbs")
			for _, v := range refused {
				c.forbidden(t, string(v), func() error { return c.Publish(wire.APISubject(p.Tenant, p.Principal, v), nil) })
				c.forbidden(t, string(v)+" as another", func() error { return c.Publish(wire.APISubject("main", "other", v), nil) })
			}
		})
	}
}

// N3, N4: what nobody may publish, and what only the auditor may ask JetStream.
func TestNobodyTouchesTheStreams(t *testing.T) {
	s, people, log := all(t)
	consumer := AuditConsumer("main", "auditor")
	var auditor []string
	var nobody = []string{
		wire.LogSubject, "effects.event.main.charge.settled", "effects.denied.main.forbidden", "effects.node.a.claim",
		"effects.payload.x", "effects.exec.main.charge", "effects.requests.main.other", "effects.requests.main", "effects.other",
		"_INBOX.main.other.x.y", "_INBOX._.ledger.x.y", "_INBOX._.answer.x.y", "_R_.x", "$SYS.REQ.USER.INFO",
		"$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.TEMPLATE.CREATE.MINE", "$JS.API.STREAM.PEER.REMOVE.EFFECTS",
		"$JS.API.STREAM.INFO.EFFECT_REQUESTS", "$JS.API.STREAM.MSG.GET.EFFECT_REQUESTS", "$JS.API.DIRECT.GET.EFFECT_REQUESTS",
		"$JS.API.STREAM.INFO.EFFECT_PAYLOADS", "$JS.API.DIRECT.GET.EFFECT_PAYLOADS",
		"$JS.API.ACCOUNT.PURGE.EFFECTD", "$JS.API.META.LEADER.STEPDOWN", "$JS.API.SERVER.REMOVE",
	}
	for _, verb := range wire.NodeVerbs() {
		nobody = append(nobody, wire.NodeSubject("01LEDGER", verb))
	}
	for _, stream := range []string{"EFFECTS", "EFFECT_FEED", "EFFECT_DENIALS", "EFFECT_REQUESTS"} {
		for _, verb := range []string{"UPDATE", "DELETE", "PURGE", "MSG.DELETE", "SNAPSHOT", "RESTORE", "LEADER.STEPDOWN"} {
			nobody = append(nobody, "$JS.API.STREAM."+verb+"."+stream)
		}
		for _, form := range []string{"CREATE.%s", "CREATE.%s.x", "CREATE.%s.x.effects.log", "DURABLE.CREATE.%s.x", "DELETE.%s." + consumer,
			"PAUSE.%s." + consumer, "RESET.%s." + consumer, "UNPIN.%s." + consumer, "LEADER.STEPDOWN.%s." + consumer,
			"MSG.NEXT.%s.audit-main-other", "MSG.NEXT.%s.dispatcher", "INFO.%s.dispatcher"} {
			nobody = append(nobody, "$JS.API.CONSUMER."+fmt.Sprintf(form, stream))
		}
		nobody = append(nobody, "$JS.ACK."+stream+".dispatcher.1.1.1.1.0")
	}
	for _, stream := range auditedStreams {
		for _, form := range []string{"STREAM.INFO.%s", "STREAM.MSG.GET.%s", "DIRECT.GET.%s", "DIRECT.GET.%s.effects.log",
			"CONSUMER.NAMES.%s", "CONSUMER.LIST.%s", "CONSUMER.INFO.%s." + consumer, "CONSUMER.MSG.NEXT.%s." + consumer} {
			auditor = append(auditor, "$JS.API."+fmt.Sprintf(form, stream))
		}
		auditor = append(auditor, "$JS.ACK."+stream+"."+consumer+".1.1.1.1.0")
	}
	auditor = append(auditor, "$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST")
	// The whole stream of denials is every tenant's: it is read by tenant alone.
	for _, read := range []string{"STREAM.INFO.EFFECT_DENIALS", "STREAM.MSG.GET.EFFECT_DENIALS", "DIRECT.GET.EFFECT_DENIALS",
		"DIRECT.GET.EFFECT_DENIALS.effects.denied.main.forbidden", "CONSUMER.NAMES.EFFECT_DENIALS", "CONSUMER.LIST.EFFECT_DENIALS",
		"CONSUMER.INFO.EFFECT_DENIALS." + DenialConsumer("other", "auditor"), "CONSUMER.MSG.NEXT.EFFECT_DENIALS." + DenialConsumer("other", "operator")} {
		nobody = append(nobody, "$JS.API."+read)
	}

	for _, letter := range []byte("POAUE") {
		p := people[letter]
		t.Run(string(p.Role), func(t *testing.T) {
			c := dialAs(t, s.ClientURL(), p)
			forbidden, allowed := slices.Clone(nobody), []string{}
			sort := func(may bool, subjects []string) {
				if may {
					allowed = append(allowed, subjects...)
				} else {
					forbidden = append(forbidden, subjects...)
				}
			}
			sort(p.Role == events.RoleAuditor, auditor)
			for _, reader := range []events.Principal{"operator", "auditor"} {
				own := DenialConsumer("main", reader)
				sort(p.Principal == reader, []string{"$JS.API.CONSUMER.INFO.EFFECT_DENIALS." + own, "$JS.API.CONSUMER.MSG.NEXT.EFFECT_DENIALS." + own,
					"$JS.ACK.EFFECT_DENIALS." + own + ".1.1.1.1.0"})
			}
			for _, subject := range allowed {
				if err := c.Publish(subject, nil); err != nil {
					t.Fatal(err)
				}
			}
			c.unrefused(t, "reads")
			for _, subject := range forbidden {
				c.forbidden(t, subject, func() error { return c.Publish(subject, []byte("x")) })
			}
		})
	}
	if info, err := log.Info(t.Context()); err != nil || info.State.Msgs != 2 {
		t.Errorf("log holds %d messages (%v), want 2", info.State.Msgs, err)
	}
}

// N5: everybody reads the own inbox alone; nobody subscribes to the ledger's subjects.
func TestInboxes(t *testing.T) {
	s, people, _ := all(t)
	for _, letter := range []byte("POAUE") {
		p := people[letter]
		c := dialAs(t, s.ClientURL(), p)
		own := wire.Inbox(p.Tenant, p.Principal)
		for _, subject := range []string{own + ".x", own + ".*.*", own + ".>"} {
			if _, err := c.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
		}
		c.unrefused(t, "own inbox")
		for _, subject := range []string{">", "*", "_INBOX.>", "_INBOX.main.>", "_INBOX.*.*.>", "_INBOX.main.other.>", "_INBOX._.ledger.>",
			"_INBOX._.dispatch.>", "effects.>", "effects.log", "effects.api.>", wire.APISubject(p.Tenant, p.Principal, wire.EffectGet),
			"effects.node.>", "effects.node.*.*", wire.NodeSubject("01LEDGER", wire.NodeClaim), wire.NodeSubject("01LEDGER", wire.NodeResult),
			wire.NodeSubject("01LEDGER", wire.NodeAbandon), "effects.exec.>", "effects.exec.main.charge", "effects.requests.>", "$SRV.>", "$SRV.PING", "$JS.>", "$SYS.>", "_R_.>"} {
			c.forbidden(t, string(p.Role)+" subscribes "+subject, func() error { _, err := c.SubscribeSync(subject); return err })
			if strings.HasPrefix(subject, wire.NodePrefix) {
				c.forbidden(t, string(p.Role)+" joins "+subject, func() error { _, err := c.QueueSubscribeSync(subject, wire.ServiceName); return err })
			}
		}
	}
}

// N3: a reply subject chosen by the requester reaches no stream, whoever answers.
func TestForgedReplySubject(t *testing.T) {
	s, people, log := all(t)
	if _, err := log.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: AuditConsumer("main", "auditor"), AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	producer, auditor := dialAs(t, s.ClientURL(), people['P']), dialAs(t, s.ClientURL(), people['U'])
	for _, reply := range []string{wire.LogSubject, "effects.event.main.charge.settled", "effects.denied.main.x", "effects.node.a"} {
		for _, forged := range []struct {
			by      *client
			subject string
			body    string
		}{
			{producer, wire.APISubject("main", "producer", wire.EffectGet), "answered by the ledger"},
			{producer, "effects.requests.main.producer", "acknowledged by JetStream"},
			{producer, "$SRV.PING", ""},
			{auditor, "$JS.API.INFO", ""},
			{auditor, "$JS.API.STREAM.INFO.EFFECTS", ""},
			{auditor, "$JS.API.STREAM.MSG.GET.EFFECTS", `{"seq":1}`},
			{auditor, "$JS.API.DIRECT.GET.EFFECTS", `{"seq":1}`},
			{auditor, "$JS.API.DIRECT.GET.EFFECTS.effects.log", ""},
			{auditor, "$JS.API.CONSUMER.INFO.EFFECTS.audit-main-auditor", ""},
			{auditor, "$JS.API.CONSUMER.MSG.NEXT.EFFECTS.audit-main-auditor", `{"batch":2,"no_wait":true}`},
		} {
			if err := forged.by.PublishRequest(forged.subject, reply, []byte(forged.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Each connection's later answer comes after what it forged.
	for _, c := range []*client{producer, auditor} {
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := producer.Request(wire.APISubject("main", "producer", wire.EffectGet), nil, patience); err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Request("effects.requests.main.producer", nil, patience); err != nil {
		t.Fatal(err)
	}
	if _, err := auditor.Request("$JS.API.STREAM.INFO.EFFECTS", nil, patience); err != nil {
		t.Fatal(err)
	}
	if _, err := auditor.Request("$JS.API.DIRECT.GET.EFFECTS", []byte(`{"seq":1}`), patience); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(serviceConn(t, s, Ledger))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{wire.LogStream: 2, wire.FeedStream: 1, wire.DenialStream: 0} {
		st, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.CachedInfo().State.Msgs; got != want {
			t.Errorf("%s holds %d messages, want %d", name, got, want)
		}
	}
}

// A trace destination is a reply subject by another name.
func TestForgedTraceDestination(t *testing.T) {
	s, people, log := all(t)
	producer := dialAs(t, s.ClientURL(), people['P'])
	m := nats.NewMsg("effects.requests.main.producer")
	m.Header.Set("Nats-Trace-Dest", wire.LogSubject)
	if err := producer.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Request("effects.requests.main.producer", nil, patience); err != nil {
		t.Fatal(err)
	}
	if info, err := log.Info(t.Context()); err != nil || info.State.Msgs != 2 {
		t.Errorf("log holds %d messages (%v), want 2", info.State.Msgs, err)
	}
}

// N6: the two connections of the ledger.
func TestServicesAreApart(t *testing.T) {
	s := startServer(t)
	for svc, forbidden := range map[Service][]string{
		Ledger:   {"effects.api.main.producer.effect.get", "effects.requests.main.p", "effects.exec.main.charge", "_INBOX.main.producer.x", "effects.other"},
		Answer:   {wire.LogSubject, "effects.event.a.b.c", "effects.denied.a.b", "effects.node.a", "$JS.API.STREAM.DELETE.EFFECTS", "$JS.ACK.EFFECTS.d.1", "effects.exec.main.charge"},
		Dispatch: {wire.LogSubject, "effects.event.a.b.c", "effects.node.a", "$JS.API.INFO", "effects.api.main.producer.effect.get", "_INBOX.main.producer.x"},
	} {
		refused := make(chan error, 16)
		nc, err := s.Conn(t.Context(), svc, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		c := &client{Conn: nc, refused: refused}
		for _, subject := range forbidden {
			c.forbidden(t, string(svc)+" publishes "+subject, func() error { return c.Publish(subject, nil) })
		}
		for _, subject := range []string{">", "_INBOX.>", "_INBOX.main.producer.>", wire.LogSubject} {
			c.forbidden(t, string(svc)+" subscribes "+subject, func() error { _, err := c.SubscribeSync(subject); return err })
		}
		if svc != Answer {
			c.forbidden(t, string(svc)+" subscribes requests", func() error { _, err := c.SubscribeSync("effects.api.>"); return err })
		}
		if svc != Ledger {
			c.forbidden(t, string(svc)+" subscribes peers", func() error { _, err := c.SubscribeSync("effects.node.>"); return err })
		}
	}
}

// An auditor reads the log by a stock client: direct get and its own consumer.
func TestAuditorReads(t *testing.T) {
	s, people, log := all(t)
	name := AuditConsumer("main", "auditor")
	if _, err := log.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	c := dialAs(t, s.ClientURL(), people['U'])
	js, err := jetstream.New(c.Conn)
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), wire.LogStream)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := st.GetMsg(t.Context(), 2); err != nil || m.Sequence != 2 || m.Subject != wire.LogSubject {
		t.Fatalf("get: %v %v", m, err)
	}
	if m, err := st.GetLastMsgForSubject(t.Context(), wire.LogSubject); err != nil || m.Sequence != 2 {
		t.Fatalf("get last: %v %v", m, err)
	}
	con, err := st.Consumer(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := con.Fetch(2, jetstream.FetchMaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for m := range batch.Messages() {
		seen++
		if m.Subject() != wire.LogSubject {
			t.Errorf("subject %s", m.Subject())
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if seen != 2 || batch.Error() != nil {
		t.Errorf("read %d messages, %v", seen, batch.Error())
	}
	c.unrefused(t, "reads")
}
