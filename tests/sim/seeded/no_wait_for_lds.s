; fault: missing_waitcnt at 10
; launch: 1 | 64 | f32(64), zeros(64)
; a value is used before LDS has answered
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v2, 1.0
	ds_write_b32 v1, v2
	ds_read_b32 v3, v1
	s_waitcnt vmcnt(0)
	v_add_f32_e32 v4, v3, v3
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v4, s[6:7]
