package operation

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Bounds of one expression and of one evaluation (O7).
const (
	maxExpression = 4096    // code points
	maxNesting    = 64      // of one expression
	maxEvalCost   = 100_000 // CEL cost units
	maxEvalMemory = 8 << 20 // bytes
	maxRegexp     = 2000    // size of a compiled regular expression
	maxFiller     = 64      // bytes of a constant that is repeated
)

// sight is the set of variables that an expression may see.
type sight uint8

const (
	seePayload      sight = 1 << iota // payload
	seePrecondition                   // precondition
	seeBinding                        // resource, effect_id, idempotency_key
	seeProviderRef                    // provider_ref
	seeResponse                       // response.status, .headers, .json, .text
	seeSecrets                        // secret.NAME
)

// What expressions see in each place.
const (
	seeInTarget  = seePayload | seeBinding
	seeInQuery   = seeInTarget | seeProviderRef
	seeInContent = seeInTarget | seePrecondition
	seeInRule    = seeInContent | seeResponse
)

// clock names the functions whose results depend on tables of the machine.
var clock = []string{"getFullYear", "getMonth", "getDayOfYear", "getDate", "getDayOfMonth", "getDayOfWeek",
	"getHours", "getMinutes", "getSeconds", "getMilliseconds"}

// language compiles the expressions of one contract; it knows its secrets.
type language struct {
	secrets []string
	envs    map[sight]*cel.Env
}

func newLanguage(secrets []string) *language {
	return &language{secrets: secrets, envs: map[sight]*cel.Env{}}
}

func (l *language) env(s sight) *cel.Env {
	if e := l.envs[s]; e != nil {
		return e
	}
	subset := env.NewLibrarySubset()
	for _, name := range clock {
		subset.AddExcludedFunctions(env.NewFunction(name))
	}
	opts := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{}),
		cel.StdLib(cel.StdLibSubset(subset)),
		ext.Strings(ext.StringsVersion(4)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxNesting),
		cel.RegexProgramSizeLimit(maxRegexp),
	}
	declare := func(seen sight, name string, t *cel.Type) {
		if s&seen != 0 {
			opts = append(opts, cel.Variable(name, t))
		}
	}
	declare(seePayload, "payload", cel.DynType)
	declare(seePrecondition, "precondition", cel.DynType)
	declare(seeBinding, "resource", cel.StringType)
	declare(seeBinding, "effect_id", cel.StringType)
	declare(seeBinding, "idempotency_key", cel.StringType)
	declare(seeProviderRef, "provider_ref", cel.StringType)
	declare(seeResponse, "response.status", cel.IntType)
	declare(seeResponse, "response.headers", cel.MapType(cel.StringType, cel.StringType))
	declare(seeResponse, "response.json", cel.DynType)
	declare(seeResponse, "response.text", cel.StringType)
	for _, name := range l.secrets {
		declare(seeSecrets, "secret."+name, cel.StringType)
	}
	e, err := cel.NewCustomEnv(opts...)
	if err != nil {
		panic(fmt.Sprintf("operation: CEL environment: %v", err)) // a defect of the program
	}
	l.envs[s] = e
	return e
}

// program is a compiled expression and what it uses.
type program struct {
	cel.Program
	secrets []string // names, as used
	fields  []string // top-level payload fields, as used
	whole   bool     // uses payload other than by field name
	swells  bool     // repeats text that is not a short constant
}

// compile checks an expression against what it may see and the kinds of result
// it may have. The error is for the owner who wrote it.
func (l *language) compile(source string, s sight, results ...types.Kind) (*program, error) {
	e := l.env(s)
	parsed, issues := e.Parse(source)
	if err := issueError(issues); err != nil {
		return nil, err
	}
	p := &program{}
	p.walk(parsed.NativeRep().Expr())
	if err := l.checkSecrets(p.secrets, s); err != nil {
		return nil, err
	}
	if p.swells {
		return nil, fmt.Errorf("CEL: what replace and join put in is a constant of at most %d bytes", maxFiller)
	}
	checked, issues := e.Check(parsed)
	if err := issueError(issues); err != nil {
		return nil, err
	}
	if kind := checked.OutputType().Kind(); kind != types.DynKind && !slices.Contains(results, kind) {
		return nil, fmt.Errorf("CEL: gives %s, which has no use here", checked.OutputType())
	}
	var err error
	p.Program, err = e.Program(checked, cel.CostLimit(maxEvalCost), cel.MemoryLimit(maxEvalMemory),
		cel.EvalOptions(cel.OptOptimize), cel.CustomDecoratorV2(orderLiterals))
	if err != nil {
		return nil, fmt.Errorf("CEL: %w", err)
	}
	return p, nil
}

func (l *language) checkSecrets(names []string, s sight) error {
	for _, name := range names {
		switch {
		case s&seeSecrets == 0:
			return fmt.Errorf("a secret; secrets stand in headers and body only")
		case name == "":
			return fmt.Errorf("write secret.NAME")
		case !slices.Contains(l.secrets, name):
			return fmt.Errorf("secret %s is not declared in secrets", name)
		}
	}
	return nil
}

func issueError(issues *cel.Issues) error {
	if issues == nil || len(issues.Errors()) == 0 {
		return nil
	}
	first := issues.Errors()[0]
	message := strings.TrimSpace(strings.ReplaceAll(first.Message, "\n", " "))
	if column := first.Location.Column(); column >= 0 {
		return fmt.Errorf("CEL: %s (character %d)", message, column+1)
	}
	return fmt.Errorf("CEL: %s", message)
}

// eval answers with a value that is not an error.
func (p *program) eval(v *scope) (ref.Val, error) {
	out, _, err := p.Eval(v)
	if err != nil {
		return nil, err
	}
	if out == nil || types.IsUnknownOrError(out) {
		return nil, fmt.Errorf("no value")
	}
	return out, nil
}

// walk notes the secrets and the payload fields that an expression names.
func (p *program) walk(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		switch identifier(e) {
		case "payload":
			p.whole = true
		case "secret":
			p.secrets = append(p.secrets, "")
		}
	case ast.SelectKind:
		p.walkMember(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		if args := call.Args(); call.FunctionName() == "_[_]" && len(args) == 2 && args[1].Kind() == ast.LiteralKind {
			if name, ok := args[1].AsLiteral().(types.String); ok {
				p.walkMember(args[0], string(name))
				return
			}
		}
		if call.IsMemberFunction() {
			p.walk(call.Target())
			p.swells = p.swells || swells(call)
		}
		p.walkAll(call.Args()...)
	case ast.ListKind:
		p.walkAll(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			p.walkAll(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			p.walk(f.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		p.walkAll(c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	}
}

// swells reports a call whose result may be as large as one input times another
// before any limit is asked.
func swells(call ast.CallExpr) bool {
	args := call.Args()
	filler := map[string]int{"replace": 1, "join": 0}
	i, repeats := filler[call.FunctionName()]
	if !repeats || i >= len(args) {
		return false
	}
	if args[i].Kind() != ast.LiteralKind {
		return true
	}
	s, ok := args[i].AsLiteral().(types.String)
	return !ok || len(s) > maxFiller
}

func (p *program) walkAll(es ...ast.Expr) {
	for _, e := range es {
		p.walk(e)
	}
}

func (p *program) walkMember(operand ast.Expr, name string) {
	if operand.Kind() == ast.IdentKind {
		switch identifier(operand) {
		case "payload":
			p.fields = append(p.fields, name)
			return
		case "secret":
			p.secrets = append(p.secrets, name)
			return
		}
	}
	p.walk(operand)
}

func identifier(e ast.Expr) string { return strings.TrimPrefix(e.AsIdent(), ".") }
