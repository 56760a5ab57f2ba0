package natsserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
)

// serverLog passes the server's messages on. A fatal one would end the process
// with the server's own logger; here it is kept for [Start] to return.
type serverLog struct {
	log   *slog.Logger
	fatal atomic.Pointer[error]
}

func (l *serverLog) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.write(slog.LevelWarn, format, v) }

// Errorf passes an error on. What a user may not do is the user's fault.
func (l *serverLog) Errorf(format string, v ...any) {
	level := slog.LevelError
	if strings.Contains(format, "Publish Violation") || strings.Contains(format, "Subscription Violation") {
		level = slog.LevelWarn
	}
	l.write(level, format, v)
}

// Tracef is never turned on: traces hold payloads.
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	l.fatal.CompareAndSwap(nil, &err)
	l.write(slog.LevelError, format, v)
}

func (l *serverLog) write(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "nats server: "+fmt.Sprintf(format, v...))
	}
}

func (l *serverLog) err() error {
	if p := l.fatal.Load(); p != nil {
		return *p
	}
	return nil
}
