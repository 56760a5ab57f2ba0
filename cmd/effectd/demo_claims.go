package main

import (
	"errors"
	"fmt"
	"time"
)

// falseClaim is a claim of the demo that did not hold.
type falseClaim struct{ claim, want, got string }

func (f *falseClaim) Error() string {
	return fmt.Sprintf("%s: expected %s, got %s", f.claim, f.want, f.got)
}

// checked is one checked claim, as --json prints it.
type checked struct {
	Chapter int    `json:"chapter"`
	Claim   string `json:"claim"`
	OK      bool   `json:"ok"`
	Want    string `json:"want"`
	Got     string `json:"got"`
}

// claim prints what is claimed if it holds, and ends the story if not.
func claim[T comparable](s *story, text string, want, got T) error {
	c := checked{s.chapter, text, want == got, fmt.Sprint(want), fmt.Sprint(got)}
	if s.json {
		s.object(c)
	}
	if !c.OK {
		return &falseClaim{text, c.Want, c.Got}
	}
	s.claims++
	s.say("   ✓ %s", text)
	return nil
}

// claims checks one after another, and stops at the first that does not hold.
func all(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// that is claim as a value, for [all].
func that[T comparable](s *story, text string, want, got T) func() error {
	return func() error { return claim(s, text, want, got) }
}

func (s *story) begin(title string) {
	s.chapter++
	s.say("\n%d  %s", s.chapter, title)
}

// say prints a line for people.
func (s *story) say(format string, args ...any) {
	if !s.json {
		s.tell(format, args...)
	}
}

// page prints aligned lines for people.
func (s *story) page(write func(*page)) {
	if !s.json {
		s.env.page(write)
	}
}

// failed ends the story: a claim that did not hold, or no answer at all.
func (s *story) failed(err error) error {
	var f *falseClaim
	if !errors.As(err, &f) {
		return err
	}
	s.say("   ✗ %s", f.claim)
	s.note("effectd: the demo failed: %s", f)
	return exitRefused
}

func (s *story) end(took time.Duration, keep bool) {
	s.say("\nAll %d claims hold, checked against the service's own book, in %s.", s.claims, duration(took))
	if keep {
		s.say("The ledger is in %s; start it with: effectd serve --data %s", s.data, s.data)
	} else {
		s.say("Nothing was left behind. Your own ledger: effectd init, effectd serve")
	}
}
