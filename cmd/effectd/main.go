package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// gcPercent lets the heap grow to five times what lives before it is collected:
// the live state is small, and collecting it often cost a fifth of the processor.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], &env{in: os.Stdin, out: os.Stdout, err: os.Stderr, now: time.Now})
	stop()
	os.Exit(code)
}

// env is where a command runs: its streams, the form of its answers, its clock.
type env struct {
	ctx  context.Context
	in   io.Reader
	out  io.Writer
	err  io.Writer
	json bool
	now  func() time.Time
}

// run parses the arguments, runs the command and returns the exit code.
func run(ctx context.Context, args []string, e *env) (code int) {
	var cli cli
	exited := -1
	parser, err := kong.New(&cli,
		kong.Name("effectd"),
		kong.Description("Governs external effects: each is bound, admitted once, sent once, and proven or called unknown."),
		kong.Writers(e.out, e.err),
		kong.Exit(func(n int) { exited = n; panic(exit(n)) }), // --help
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.ExplicitGroups(groups()),
		kong.Vars{"data": defaultData},
	)
	if err != nil {
		panic(fmt.Sprintf("command line: %v", err)) // a defect of the program
	}
	defer func() {
		if p := recover(); p != nil && exited < 0 {
			panic(p)
		} else if p != nil {
			code = exited
		}
	}()
	chosen, err := parser.Parse(args)
	if err != nil {
		return e.fail(usageOf(err))
	}
	out := &sink{w: e.out}
	e.ctx, e.json, e.out = ctx, cli.JSON, out
	if err = chosen.Run(e); err == nil && out.err != nil {
		err = fmt.Errorf("standard output: %w", out.err)
	}
	return e.fail(err)
}

func usageOf(err error) error {
	hint := "effectd --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		hint = parse.Context.Selected().FullPath() + " --help"
	}
	what := err.Error()
	var bad *usage // of a Validate: without the path that kong puts before it
	if errors.As(err, &bad) {
		what = bad.what
	}
	return &usage{what: what, hint: hint}
}
