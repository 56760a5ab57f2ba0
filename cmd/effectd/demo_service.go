package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// charge is one line in the book of the payment service.
type charge struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	key     string
}

// payments is a payment service over HTTP. Its book is what really happened,
// whatever anybody was told. It charges once per idempotency key.
type payments struct {
	url    string
	token  string
	server *http.Server
	ended  chan error

	mu     sync.Mutex
	book   []charge
	posts  map[string]int // requests to charge, by idempotency key
	asked  int            // questions about charges
	losing int            // answers still to be lost
}

// openPayments starts the service on a free port of this machine.
func openPayments(token string) (*payments, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("payment service: %w", err)
	}
	s := &payments{url: "http://" + listener.Addr().String() + "/charges", token: token, posts: map[string]int{}, ended: make(chan error, 1)}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /charges", s.post)
	routes.HandleFunc("GET /charges", s.get)
	s.server = &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

func (s *payments) close(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if served := <-s.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// loseNext makes the service do the work of the next charge and then close the
// connection without a word.
func (s *payments) loseNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.losing++
}

// charged counts the charges to an account and their sum.
func (s *payments) charged(account string) (n int, sum int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.book {
		if c.Account == account {
			n, sum = n+1, sum+c.Amount
		}
	}
	return n, sum
}

// sent counts the requests to charge that came with a key.
func (s *payments) sent(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts[key]
}

// questions counts the times that somebody asked what was charged.
func (s *payments) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *payments) post(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+s.token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	wanted := charge{key: r.Header.Get("Idempotency-Key")}
	if err := json.UnmarshalRead(r.Body, &wanted); err != nil || wanted.key == "" || wanted.Account == "" || wanted.Amount <= 0 {
		http.Error(w, "no such charge", http.StatusBadRequest)
		return
	}
	done, status, lose := s.charge(wanted)
	if lose {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	reply(w, status, done)
}

// charge does the work, once per key.
func (s *payments) charge(wanted charge) (done charge, status int, lose bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts[wanted.key]++
	for _, c := range s.book {
		if c.key == wanted.key && (c.Account != wanted.Account || c.Amount != wanted.Amount) {
			return charge{}, http.StatusUnprocessableEntity, false
		}
		if c.key == wanted.key {
			return c, http.StatusOK, false
		}
	}
	wanted.ID = fmt.Sprintf("ch_%d", len(s.book)+1)
	s.book = append(s.book, wanted)
	if s.losing > 0 {
		s.losing--
		lose = true
	}
	return wanted, http.StatusCreated, lose
}

// get answers what was charged under a key.
func (s *payments) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked++
	found := struct {
		Items []charge `json:"items"`
	}{[]charge{}}
	for _, c := range s.book {
		if c.key == r.URL.Query().Get("key") {
			found.Items = append(found.Items, c)
		}
	}
	s.mu.Unlock()
	reply(w, http.StatusOK, found)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, body)
}

// contract is the operation that the demo registers for a service.
func contract(url string) string { return strings.ReplaceAll(chargeContract, "SERVICE", url) }

const chargeContract = `name: charge
version: 1
description: Charge a card account.
input:
  type: object
  required: [account, amount]
  additionalProperties: false
  properties: {account: {type: string}, amount: {type: integer, minimum: 1}}
resource: account/${payload.account}
exposes: [account, amount]
cost: {usd_cents: payload.amount}
expires: 10m
timeout: 2s
concurrency: 32
payload: plain
adapter:
  kind: http
  method: POST
  url: SERVICE
  headers: {Content-Type: application/json, Authorization: "Bearer ${secret.EFFECTD_DEMO_TOKEN}"}
  body: payload
secrets: [EFFECTD_DEMO_TOKEN]
idempotency: {header: Idempotency-Key, scope: account, retention: 24h, concurrent: true, mismatch_rejected: true}
outcomes:
  - {when: "response.status in [200, 201]", outcome: succeeded, means: completed, provider_ref: response.json.id, cost: {usd_cents: response.json.amount}}
  - {when: response.status == 402, outcome: failed, cost: {usd_cents: "0"}}
  - {when: response.status == 400, outcome: no_effect}
reconcile:
  query: {method: GET, url: "SERVICE?key=${idempotency_key}"}
  rules:
    - {when: response.status == 200 && size(response.json.items) > 0, outcome: succeeded, provider_ref: "response.json.items[0].id"}
    - {when: response.status == 200, not_found: true}
  not_found_is_conclusive: false
  settling_window: 5s
`
