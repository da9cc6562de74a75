package referent

import (
	"fmt"
	"strings"

	"github.com/pod-reloader/pod-reloader/pkg/reference"
)

// Text is the picture as a tree. What is below a node is shown once, where the node appears first.
func (p Picture) Text() string {
	t := tree{nodes: map[Key]PictureNode{}, below: map[Key][]PictureEdge{}, shown: map[Key]bool{}}
	for _, n := range p.Nodes {
		t.nodes[n.Key] = n
	}
	for _, e := range p.Edges {
		t.below[e.From] = append(t.below[e.From], e)
	}
	for _, root := range p.Roots {
		t.write(root, root.Namespace, "", "")
	}
	return t.text.String()
}

// markIgnored precedes a reference that is ignored.
const markIgnored = "! ignored: "

type tree struct {
	nodes map[Key]PictureNode
	below map[Key][]PictureEdge
	shown map[Key]bool
	depth int
	text  strings.Builder
}

// write shows a node after the branch that leads to it, and what is below it after the margin.
func (t *tree) write(key Key, namespace, branch, margin string) {
	t.text.WriteString(branch + t.title(key, namespace, branch == ""))
	if t.shown[key] && len(t.below[key]) > 0 {
		t.text.WriteString(" (see above)\n")
		return
	}
	if t.depth++; t.depth > MaxDepth+2 && len(t.below[key]) > 0 {
		t.text.WriteString(" …\n")
		t.depth--
		return
	}
	t.text.WriteString("\n")
	t.shown[key] = true
	for _, problem := range t.nodes[key].Problems {
		t.text.WriteString(margin + "  " + markIgnored + reference.Printable(problem) + "\n")
	}
	for i, edge := range t.below[key] {
		before, after := "├─ ", "│  "
		if i == len(t.below[key])-1 {
			before, after = "└─ ", "   "
		}
		if edge.Optional {
			before += "optional "
		}
		t.write(edge.To, namespace, margin+before, margin+after)
	}
	t.depth--
}

func (t *tree) title(key Key, namespace string, root bool) string {
	n, known := t.nodes[key]
	state := "missing"
	if known {
		state = reference.Printable(n.State())
	}
	if root && namespace != "" {
		return fmt.Sprintf("%s in namespace %s  [%s]", key, namespace, state)
	}
	return fmt.Sprintf("%s  [%s]", key.In(namespace), state)
}

// lines are what a drawing says in a node.
func (n PictureNode) lines() []string {
	lines := []string{n.Key.In(""), n.State()}
	for _, problem := range n.Problems {
		lines = append(lines, markIgnored+problem)
	}
	return lines
}

// DOT is the picture for Graphviz.
func (p Picture) DOT() string {
	var text strings.Builder
	text.WriteString("digraph referents {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, n := range p.Nodes {
		fmt.Fprintf(&text, "  %s [label=%s%s];\n", dotText(n.Key.id()), dotText(strings.Join(n.lines(), "\n")), dotStyle[n.status()])
	}
	for _, e := range p.Edges {
		style := ""
		if e.Optional {
			style = " [style=dashed]"
		}
		fmt.Fprintf(&text, "  %s -> %s%s;\n", dotText(e.From.id()), dotText(e.To.id()), style)
	}
	text.WriteString("}\n")
	return text.String()
}

var dotStyle = map[string]string{"absent": ", style=dashed", "held": ", color=red", "cause": ", color=red, penwidth=2"}

// dotText is a quoted string of DOT, with line breaks as it writes them.
func dotText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(reference.Printable(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// Mermaid is the picture as a flowchart, for Markdown.
func (p Picture) Mermaid() string {
	var text strings.Builder
	text.WriteString("flowchart LR\n")
	number := map[Key]int{}
	for i, n := range p.Nodes {
		number[n.Key] = i
		lines := n.lines()
		for j, line := range lines {
			lines[j] = mermaidText(line)
		}
		fmt.Fprintf(&text, "  n%d[\"%s\"]%s\n", i, strings.Join(lines, "<br/>"), mermaidClass[n.status()])
	}
	for _, e := range p.Edges {
		arrow := "-->"
		if e.Optional {
			arrow = "-.->"
		}
		fmt.Fprintf(&text, "  n%d %s n%d\n", number[e.From], arrow, number[e.To])
	}
	text.WriteString("  classDef held stroke:#c00\n  classDef cause stroke:#c00,stroke-width:3px\n  classDef absent stroke-dasharray:4\n")
	return text.String()
}

var mermaidClass = map[string]string{"absent": ":::absent", "held": ":::held", "cause": ":::cause"}

// mermaidText escapes what ends a label, or is read as markup in it.
func mermaidText(text string) string {
	return strings.NewReplacer(
		"#", "#35;", "&", "#38;", `"`, "#34;", "<", "#60;", ">", "#62;", "`", "#96;",
	).Replace(reference.Printable(text))
}

// id is the key as a text that no other key has.
func (k Key) id() string { return k.Namespace + "/" + k.GroupResource().String() + "/" + k.Name }
