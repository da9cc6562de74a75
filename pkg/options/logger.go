package options

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/pflag"
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

// logFlags are those about logs.
type logFlags struct {
	set           *pflag.FlagSet
	format, level string
	zap           crzap.Options
}

func (f *logFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.format, "log-format", "json", "`json|text`")
	set.StringVar(&f.level, "log-level", "info", "`level`: trace, debug, info, warning, error, fatal, panic, or a number: a higher number logs more")
	legacy := flag.NewFlagSet("zap", flag.ContinueOnError)
	f.zap.BindFlags(legacy)
	legacy.VisitAll(func(fl *flag.Flag) { fl.Usage = zapUsage[fl.Name] })
	set.AddGoFlagSet(legacy)
}

// zapUsage says in our words what the logging flags of SAP's pod-reloader do.
var zapUsage = map[string]string{
	"zap-devel":            "text logs at level debug, with stack traces from warnings on",
	"zap-encoder":          "`json|console`; --log-format takes precedence",
	"zap-log-level":        "`debug|info|error|panic`, or a number; --log-level takes precedence",
	"zap-stacktrace-level": "stack traces from this level on: `info|error|panic`",
	"zap-time-encoding":    "`encoding` of times: epoch|millis|nanos|iso8601|rfc3339|rfc3339nano (default rfc3339)",
}

// complete reads the flags: --log-format and --log-level go first, then zap's, then what --zap-devel calls for.
func (f *logFlags) complete() Logging {
	l := Logging{level: f.zap.Level, stacktrace: f.zap.StacktraceLevel, encoder: f.encoder()}
	if l.level == nil {
		l.level = choose(f.zap.Development, zap.DebugLevel, zap.InfoLevel)
	}
	if l.stacktrace == nil {
		// Errors say by themselves what was attempted; a stack trace is for panics, which bring their own.
		l.stacktrace = choose(f.zap.Development, zap.WarnLevel, zap.PanicLevel)
	}
	if f.set.Changed("log-level") {
		l.level, _ = parseLevel(f.level) // warnings has the error
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

// warnings adds what is wrong with --log-format and --log-level. They are no errors of Complete: Reloader starts with each value.
func (f *logFlags) warnings(p *problems) {
	switch f.word() {
	case "json", "text", "": // empty is the default of Reloader's chart
	default:
		p.add("log-format", fmt.Errorf("%s is neither json nor text, and has the effect of json: write json or text", reference.Quote(f.format)))
	}
	_, err := parseLevel(f.level)
	p.add("log-level", err)
}

// word returns the value of --log-format in lower case.
func (f *logFlags) word() string { return strings.ToLower(strings.TrimSpace(f.format)) }

func (f *logFlags) encoder() zapcore.Encoder {
	encodeTime := f.zap.TimeEncoder
	if encodeTime == nil {
		encodeTime = zapcore.RFC3339TimeEncoder
	}
	readable := func(c *zapcore.EncoderConfig) {
		c.EncodeTime, c.EncodeDuration = encodeTime, zapcore.StringDurationEncoder
	}
	if f.zap.NewEncoder != nil && !f.set.Changed("log-format") {
		return f.zap.NewEncoder(readable)
	}
	text := f.word() == "text" || f.zap.Development && !f.set.Changed("log-format")
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
