// Runs an example while another thread collects garbage all the time:
//
//   collect.exe EXAMPLE.exe ARGUMENTS
using System;
using System.Linq;
using System.Threading;

static class Program
{
    static int Main(string[] args)
    {
        var collector = new Thread(Run) { IsBackground = true };
        collector.Start();
        return AppDomain.CurrentDomain.ExecuteAssembly(args[0], args.Skip(1).ToArray());
    }

    static void Run()
    {
        while (true)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(5); // three times in each frame of an example
        }
    }
}
