package embedded_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
)

// service is a real HTTP service with a book of what it was asked to do. It does
// the work of a key once, whatever it then answers.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	requests map[string]int   // per idempotency key
	amounts  map[string]int64 // charged per idempotency key
	headers  []http.Header    // of the sends, in order
	answer   http.HandlerFunc // after the work; nil: it says that it is done
	query    http.HandlerFunc // of a reconciliation; nil: it looks the key up
}

func newService(t testing.TB) *service {
	s := &service{requests: map[string]int{}, amounts: map[string]int64{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.asked(w, r)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	body, _ := io.ReadAll(r.Body)
	var charge struct {
		Amount int64 `json:"amount"`
	}
	_ = json.Unmarshal(body, &charge)
	s.mu.Lock()
	s.requests[key]++
	s.amounts[key] = charge.Amount
	s.headers = append(s.headers, r.Header.Clone())
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		answer = s.done
	}
	answer(w, r)
}

// done answers as a service that did the work.
func (s *service) done(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	amount := s.amounts[key]
	s.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"id":"ch_%s","amount":%d}`, key, amount)
}

func (s *service) asked(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	query := s.query
	s.mu.Unlock()
	if query != nil {
		query(w, r)
		return
	}
	s.lookUp(w, r.URL.Query().Get("key"))
}

// deaf makes the service hear queries, which it tells, and never answer them.
func (s *service) deaf() (heard chan struct{}) {
	heard = make(chan struct{}, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.query = func(_ http.ResponseWriter, r *http.Request) {
		heard <- struct{}{}
		<-r.Context().Done()
	}
	return heard
}

// lookUp answers the query of a reconciliation.
func (s *service) lookUp(w http.ResponseWriter, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[key] == 0 {
		fmt.Fprint(w, `{"items":[]}`)
		return
	}
	fmt.Fprintf(w, `{"items":[{"id":"ch_%s","amount":%d}]}`, key, s.amounts[key])
}

// answers sets what the service answers from now on; nil: that it is done.
func (s *service) answers(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// lose closes the connection without an answer.
func lose(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

// holds makes the service keep its answers back. Each send is told on arrived;
// what was kept back is answered once let is closed.
func (s *service) holds() (arrived chan string, let chan struct{}) {
	arrived, let = make(chan string, 4096), make(chan struct{})
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("Idempotency-Key")
		select {
		case <-let:
			s.done(w, r)
		case <-r.Context().Done():
		}
	})
	return arrived, let
}

// total is the number of sends, and twice the keys that were sent more than once.
func (s *service) total() (n int, twice []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, count := range s.requests {
		n += count
		if count > 1 {
			twice = append(twice, key)
		}
	}
	return n, twice
}

// sum is what was charged.
func (s *service) sum() (total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, amount := range s.amounts {
		total += amount
	}
	return total
}

// served checks how many sends the service saw, each of another effect.
func (s *service) served(t testing.TB, want int) {
	t.Helper()
	if n, twice := s.total(); n != want || len(twice) > 0 {
		t.Fatalf("%d sends at the service, want %d; more than once: %v", n, want, twice)
	}
}
