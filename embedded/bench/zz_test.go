package bench
import ("testing";"time";"fmt";"os";"github.com/go-json-experiment/json";"strconv";"strings")
func TestManual(t *testing.T){
	if os.Getenv("BENCH")=="" {t.Skip()}
	start:=time.Now()
	d,_:=time.ParseDuration(os.Getenv("BENCH"))
	var in []int
	for _,s:=range strings.Split(os.Getenv("INFLIGHT"),",") { n,_:=strconv.Atoi(s); in=append(in,n) }
	r,err:=Run(t.Context(),Options{InFlight:in,Duration:d,Progress:func(s string,a,b int){fmt.Println(time.Since(start).Round(time.Millisecond),s,a,b)}})
	if err!=nil{t.Fatal(err)}
	b,_:=json.Marshal(r); fmt.Println(strings.ReplaceAll(string(b),`{"in_fl`,"\n{\"in_fl"))
}
