#!/usr/bin/env escript
%% Runs histories, one Erlang term a line, through OTP's own supervisor, and answers each with a
%% line: who was started, refused and stopped, in order, and whether the root gave up. Nothing
%% sleeps: time passes in that the times that a supervisor keeps are moved into the past. A history
%% that saw the clock's second change is run again.
-mode(compile).
-export([init/1, start_supervisor/1, start_leaf/1]).

main([]) ->
    logger:set_primary_config(level, none),
    process_flag(trap_exit, true),
    each(io:read("")).

each(eof) -> ok;
each({ok, History}) ->
    io:format("~s~n", [lists:join(" ", run(History))]),
    each(io:read("")).

run({Root, Instances, Refused, Steps} = History) ->
    Second = erlang:monotonic_time(1),
    ets:new(world, [named_table, public, ordered_set]),
    refuse(Refused),
    Started = start_supervisor(Root),
    case Started of
        {ok, Pid} ->
            [supervisor:start_child(Pid, [Name]) || Name <- Instances],
            steps(Pid, 0, Steps);
        {error, _} -> ok
    end,
    is_running(Started) orelse say(gave_up, element(1, Root)),
    Trace = [Said || [Said] <- ets:match(world, {{said, '_'}, '$1'})],
    stop(Started),
    ets:delete(world),
    case erlang:monotonic_time(1) of
        Second -> Trace;
        _ -> run(History)
    end.

stop({ok, Root}) ->
    exit(Root, shutdown),
    receive {'EXIT', Root, _} -> ok end;
stop(_) ->
    receive {'EXIT', _, _} -> ok end.

steps(_, _, []) -> ok;
steps(Root, Last, [{At, Name, Reason, Refused} | Rest]) ->
    older(Root, At - Last),
    refuse(Refused),
    case ets:lookup(world, {leaf, Name}) of
        [{_, Pid}] ->
            Pid ! {finish, Reason},
            wait(fun() -> not is_process_alive(Pid) end);
        [] -> ok
    end,
    wait(fun() -> not is_process_alive(Root) orelse is_settled(Root) end),
    is_process_alive(Root) andalso steps(Root, At, Rest).

is_running({ok, Pid}) -> is_process_alive(Pid);
is_running(_) -> false.

%% Every end was noticed, and nothing is left to be tried again.
is_settled(Supervisor) ->
    try supervisor:which_children(Supervisor) of
        Children -> lists:all(fun is_settled_child/1, Children)
    catch exit:_ -> false
    end.

is_settled_child({_, undefined, _, _}) -> true;
is_settled_child({_, restarting, _, _}) -> false;
is_settled_child({_, Pid, supervisor, _}) -> is_settled(Pid);
is_settled_child({_, Pid, worker, _}) -> is_process_alive(Pid).

%% The seventh and eighth element of a supervisor's state are its period and its restarts.
older(Supervisor, Seconds) ->
    sys:replace_state(Supervisor, fun(State) when is_integer(element(7, State)) ->
        setelement(8, State, [Time - Seconds || Time <- element(8, State)])
    end),
    [older(Pid, Seconds)
     || {_, Pid, supervisor, _} <- supervisor:which_children(Supervisor), is_pid(Pid)].

wait(Done) ->
    case Done() of
        true -> ok;
        false -> erlang:yield(), wait(Done)
    end.

refuse(Refused) ->
    ets:match_delete(world, {{refused, '_'}, '_'}),
    ets:insert(world, [{{refused, Name}, Times} || {Name, Times} <- Refused]).

say(Word, Name) ->
    ets:insert(world, {{said, erlang:unique_integer([monotonic])}, io_lib:format("~s:~s", [Word, Name])}).

start_supervisor(Spec) -> supervisor:start_link(?MODULE, Spec).

init({_, Strategy, Intensity, Period, Children, _}) ->
    Flags = #{strategy => Strategy, intensity => Intensity, period => Period},
    {ok, {Flags, [child(Strategy, Child) || Child <- Children]}}.

child(Strategy, {Name, Restart}) ->
    Arguments = case Strategy of simple_one_for_one -> []; _ -> [Name] end,
    #{id => Name, start => {?MODULE, start_leaf, Arguments}, restart => Restart};
child(_, {Name, _, _, _, _, Restart} = Spec) ->
    #{id => Name, start => {?MODULE, start_supervisor, [Spec]}, restart => Restart,
      type => supervisor}.

start_leaf(Name) ->
    case ets:update_counter(world, {refused, Name}, -1, {refused, 0}) of
        Left when Left >= 0 ->
            say(refused, Name),
            {error, refused};
        _ ->
            Starter = self(),
            Pid = spawn_link(fun() ->
                process_flag(trap_exit, true),
                Starter ! {runs, self()},
                leaf(Name)
            end),
            receive {runs, Pid} -> ok end,
            ets:insert(world, {{leaf, Name}, Pid}),
            say(started, Name),
            {ok, Pid}
    end.

leaf(Name) ->
    receive
        {finish, Reason} -> exit(Reason);
        {'EXIT', _, Reason} -> say(stopped, Name), exit(Reason)
    end.
