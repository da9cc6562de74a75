package reloadtest

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Page answers a list with the page of all objects that its options ask for, and returns how many objects it has.
func Page(list client.ObjectList, all []unstructured.Unstructured, o client.ListOptions) int {
	begin, _ := strconv.Atoi(o.Continue) // 0 where there is none
	end := len(all)
	if o.Limit > 0 && begin+int(o.Limit) < end {
		end = begin + int(o.Limit)
		list.SetContinue(strconv.Itoa(end))
	}
	page := list.(*unstructured.UnstructuredList)
	page.Items = all[begin:end]
	return len(page.Items)
}
