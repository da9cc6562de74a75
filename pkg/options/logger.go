package options

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	crzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Logging says what is logged and how.
type Logging struct {
	level, stacktrace zapcore.LevelEnabler
	encoder           zapcore.Encoder
}

// Enabled reports whether lines of a level are written.
func (l Logging) Enabled(level zapcore.Level) bool { return l.level.Enabled(level) }

// Logger returns a logger that writes every line it is given: unlike zap's usual one it does not drop lines that come
// often, since each is about another workload.
func (l Logging) Logger(to io.Writer) logr.Logger {
	sink := zapcore.Lock(zapcore.AddSync(to))
	core := zapcore.NewCore(l.encoder, sink, l.level)
	return zapr.NewLogger(zap.New(core, zap.AddStacktrace(l.stacktrace), zap.ErrorOutput(sink)))
}

// logging reads the logging flags: --log-format and --log-level go first, then zap's, then what --zap-devel calls for.
func (f *Flags) logging(p *problems) Logging {
	l := Logging{level: f.zap.Level, stacktrace: f.zap.StacktraceLevel}
	if l.level == nil {
		l.level = choose(f.zap.Development, zap.DebugLevel, zap.InfoLevel)
	}
	if l.stacktrace == nil {
		// Errors say by themselves what was attempted; a stack trace is for panics, which bring their own.
		l.stacktrace = choose(f.zap.Development, zap.WarnLevel, zap.PanicLevel)
	}
	if f.all.Changed("log-level") {
		level, err := parseLevel(f.logLevel)
		p.add("log-level", err)
		l.level = level
	}
	if f.logFormat != "" { // the default of Reloader's chart
		p.oneOf("log-format", f.logFormat, "json", "text")
	}
	l.encoder = f.encoder()
	return l
}

func (f *Flags) encoder() zapcore.Encoder {
	encodeTime := f.zap.TimeEncoder
	if encodeTime == nil {
		encodeTime = zapcore.RFC3339TimeEncoder
	}
	withTime := func(c *zapcore.EncoderConfig) { c.EncodeTime = encodeTime }
	if f.zap.NewEncoder != nil && !f.all.Changed("log-format") {
		return f.zap.NewEncoder(withTime)
	}
	text := f.logFormat == "text" || f.zap.Development && !f.all.Changed("log-format")
	var built crzap.Options
	if text {
		crzap.ConsoleEncoder(withTime)(&built)
	} else {
		crzap.JSONEncoder(withTime)(&built)
	}
	return built.Encoder
}

func choose(development bool, yes, no zapcore.Level) zapcore.LevelEnabler {
	if development {
		return yes
	}
	return no
}

// parseLevel reads a level as zap's flag does: debug logs more, and higher numbers still more. The other names are those of
// Reloader. This program logs at trace, debug, info and error.
func parseLevel(s string) (zapcore.LevelEnabler, error) {
	switch strings.ToLower(s) {
	case "trace":
		return zapcore.Level(-2), nil
	case "debug":
		return zap.DebugLevel, nil
	case "info":
		return zap.InfoLevel, nil
	case "warn", "warning":
		return zap.WarnLevel, nil
	case "error":
		return zap.ErrorLevel, nil
	case "fatal":
		return zap.FatalLevel, nil
	case "panic":
		return zap.PanicLevel, nil
	}
	if n, err := strconv.ParseInt(s, 10, 8); err == nil && n > 0 {
		return zapcore.Level(-n), nil
	}
	return nil, fmt.Errorf("%q: want trace, debug, info, warning, error, fatal, panic or a number above 0", s)
}
