package worldbench
import ("testing";"time";"context")
func TestZZ(t *testing.T){
 s,_:=Plain(10000,1); b:=time.Now()
 r,err:=Run(context.Background(), Config{Scene:s,Players:1000,Ticks:200,Loss:0.02,MinRTT:20*time.Millisecond,MaxRTT:200*time.Millisecond,Seed:1,Offline:true,Clock:func() time.Duration{return time.Since(b)}})
 if err!=nil {t.Fatal(err)}
 t.Logf("%+v",r)
}
