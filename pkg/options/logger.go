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

	"github.com/pod-reloader/pod-reloader/pkg/reference"
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
func (f *Flags) logging() Logging {
	l := Logging{level: f.zap.Level, stacktrace: f.zap.StacktraceLevel, encoder: f.encoder()}
	if l.level == nil {
		l.level = choose(f.zap.Development, zap.DebugLevel, zap.InfoLevel)
	}
	if l.stacktrace == nil {
		// Errors say by themselves what was attempted; a stack trace is for panics, which bring their own.
		l.stacktrace = choose(f.zap.Development, zap.WarnLevel, zap.PanicLevel)
	}
	if f.all.Changed("log-level") {
		l.level, _ = parseLevel(f.logLevel) // loggingWarnings has the error
	}
	l.level = withoutBodies{l.level}
	return l
}

// lowestLevel is the lowest level that is logged. At the next one, client-go logs the bodies of answers to whatever logger a context has:
// also those with digest keys and private keys.
const lowestLevel = zapcore.Level(-7)

// withoutBodies enables no level below the lowest one.
type withoutBodies struct{ zapcore.LevelEnabler }

// Enabled reports whether a level is logged.
func (w withoutBodies) Enabled(level zapcore.Level) bool {
	return level >= lowestLevel && w.LevelEnabler.Enabled(level)
}

// loggingWarnings adds what is wrong with --log-format and --log-level. They are no errors of Complete: Reloader starts with each value.
func (f *Flags) loggingWarnings(p *problems) {
	switch f.formatWord() {
	case "json", "text", "": // empty is the default of Reloader's chart
	default:
		p.add("log-format", fmt.Errorf("%s is neither json nor text, and has the effect of json: write json or text", reference.Quote(f.logFormat)))
	}
	_, err := parseLevel(f.logLevel)
	p.add("log-level", err)
}

// formatWord returns the value of --log-format in lower case.
func (f *Flags) formatWord() string { return strings.ToLower(strings.TrimSpace(f.logFormat)) }

func (f *Flags) encoder() zapcore.Encoder {
	encodeTime := f.zap.TimeEncoder
	if encodeTime == nil {
		encodeTime = zapcore.RFC3339TimeEncoder
	}
	readable := func(c *zapcore.EncoderConfig) {
		c.EncodeTime, c.EncodeDuration = encodeTime, zapcore.StringDurationEncoder
	}
	if f.zap.NewEncoder != nil && !f.all.Changed("log-format") {
		return f.zap.NewEncoder(readable)
	}
	text := f.formatWord() == "text" || f.zap.Development && !f.all.Changed("log-format")
	var built crzap.Options
	if text {
		crzap.ConsoleEncoder(readable)(&built)
	} else {
		crzap.JSONEncoder(readable)(&built)
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
// Reloader. This program logs at trace, debug, info and error. An unknown value has the effect of info, as in Reloader.
func parseLevel(s string) (zapcore.LevelEnabler, error) {
	word := strings.ToLower(strings.TrimSpace(s))
	switch word {
	case "trace":
		return zapcore.Level(-2), nil
	case "debug":
		return zap.DebugLevel, nil
	case "info", "":
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
	if n, err := strconv.ParseInt(word, 10, 8); err == nil && n > 0 {
		return zapcore.Level(-n), nil
	}
	return zap.InfoLevel, fmt.Errorf("%s is no level, and has the effect of info: write trace, debug, info, warning, error, fatal, panic or a number above 0",
		reference.Quote(s))
}
